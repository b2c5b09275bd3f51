"""The columns by which a timeline finds the state of any node at any moment by search, not by going through events."""

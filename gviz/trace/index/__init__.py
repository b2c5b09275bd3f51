"""Sorted columns in which a timeline finds the state of any node at any moment by binary search, without a replay."""

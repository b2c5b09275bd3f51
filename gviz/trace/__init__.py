"""The ordered list of events in one file, and what it says the graph looked like at any moment."""

"""The SQLite file that a trace is: how it is written while the program runs, kept within bounds, and read."""

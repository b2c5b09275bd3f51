"""What follows from a changed number, in words and curves: for the debugger and the command line."""

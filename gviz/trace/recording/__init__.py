"""Records a program from within: what is recorded, from when to when, and what else is written to the trace."""

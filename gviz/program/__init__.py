"""Somebody's program, run and recorded in a process of its own."""

"""Recorded operations, run again."""

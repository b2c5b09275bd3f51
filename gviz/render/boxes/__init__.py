"""The boxes and lines that a graph has, whatever the moment, and what each of them says at one."""

"""One line of text as a command: how it is read, completed, and where lines come from."""

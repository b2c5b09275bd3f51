"""The command line; each command is one small file of `commands`."""

"""The screens: the debugger, the help, the inspector."""

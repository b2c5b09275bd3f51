"""Every command of the debugger, declared in one table; a file for each group of them says what they answer."""

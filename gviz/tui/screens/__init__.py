"""The screens: the debugger, what lies over its panels for a while, and what its keys do there."""

"""A program under control: its gate holds it, the debuggee speaks for it, a session is the debugger's end."""

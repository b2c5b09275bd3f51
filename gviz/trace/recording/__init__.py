"""Recording a program from within: what is listened to, from when to when, and what it writes besides."""

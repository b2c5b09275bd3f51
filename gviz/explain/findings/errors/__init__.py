"""The program ended with an error, in a forward, a backward pass or a write in place."""

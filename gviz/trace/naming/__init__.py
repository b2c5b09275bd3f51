"""Names of nodes: the variables that hold them, read from the source text and the call stacks."""

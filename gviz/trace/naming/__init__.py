"""Names of nodes: the variables that hold them, read from the source text and the call stacks.

Read first:

1. `bindings.py`: which expressions of a source text are assigned to which variables.
2. `assignments.py`: the targets of the assignment that created a node, found by its call stack.
3. `node_names.py`: the name of a node.

The walk of one name: in ``best, where = x.max(dim=1)`` the call stack of the node ``max`` has the line and columns of
``x.max(dim=1)``. `bindings.bindings` has parsed the file once and knows that this range is assigned to two variables in
turn. The trace knows that output 0 is part 0 of the call's result, so `Names` calls the node ``best``. A library call
may create many nodes; `calls.py` groups them, and the last of them gets the variable's name. Source text is only
parsed, never run.
"""

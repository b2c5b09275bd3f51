"""Recorded operations, run again by the built-in engine: with a number changed, with inputs moved, or as a script.

The program itself never runs again. Three questions are answered this way, each in a file to read first:

1. `iteration`: what would have followed from another number? It runs one iteration again and gives a `branch`. 2.
`finite_differences`: is a backward rule the derivative of its forward? It compares what was sent with slopes. 3.
`script`: can this moment be reproduced without the program? It writes a script that gives the recorded numbers.

All three need `forward`: a recorded node as a function that can be called. `function_body` is the same for a
`torch.autograd.Function` of the program, `named_calls` for calls that are made of several operations.

A walk: ``whatif x = 5`` is parsed by `change` to ``Change(node=1, numbers=5)``. `rerun_iteration` goes through the
events of the iteration: the leaf ``x`` is made with 5 instead of 2, ``x * y`` runs on it and gives 15, the backward
pass runs. What the engine emits goes to a log of its own. `BranchView` shows that log in the node numbers of the
recording.
"""

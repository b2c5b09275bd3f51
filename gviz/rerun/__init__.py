"""Runs recorded operations again in the built-in engine: with changed numbers, with moved inputs, or as a script.

The program itself never runs again. Three questions are answered this way, each in one file to start with:

1. `iteration`: what would follow from another number? It runs one iteration again and returns a `branch`.
2. `finite_differences`: is a backward rule the derivative of its forward? It compares what was sent with slopes.
3. `reproduction_script`: can this moment be reproduced without the program? It writes a script that gives the
   recorded numbers.

All three need `node_forward`: a recorded node as a callable function. `custom_function_forward` does the same for a
`torch.autograd.Function` of the program, and `custom_function_backward` compares its backward with it.

Example: ``whatif x = 5`` is parsed by `change_parser` to ``Change(node=1, numbers=5)``. `rerun_iteration` processes the
events of the iteration: the leaf ``x`` is created with 5 instead of 2, ``x * y`` runs on it and gives 15, the backward
pass runs. The engine's events go to a separate log. `BranchView` shows that log in the recording's node numbers.
"""

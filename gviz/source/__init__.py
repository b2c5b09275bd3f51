"""The source of the user's program: which of its lines runs, and its variable names.

`call_stack` captures call stacks and resolves them to frames of the program, without those of gviz and of frameworks.
`variables_of_objects` finds the variable that holds an object. `parsing` parses text without running it. Nothing here
evaluates anything, and nothing imports another package of gviz.
"""

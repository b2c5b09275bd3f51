"""The source of the user's program: which of its lines runs, and what its variables are called.

`site` catches call stacks and reads them as frames of the program, without those of gviz and of frameworks. `variables`
finds the variable that holds an object. `syntax` parses text without running it. Nothing here evaluates anything, and
nothing imports another room.
"""

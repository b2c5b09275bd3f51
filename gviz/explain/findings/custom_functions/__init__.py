"""Functions of the program with a backward rule of their own, and second derivatives."""

"""What nodes are called: variables that hold them, read from the text of the program and the calls that made them."""

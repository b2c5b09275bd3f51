"""gviz in other tools: notebooks, pytest, and programs written for torchviz."""

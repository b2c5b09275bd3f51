"""gviz inside other tools: notebooks, pytest, and what is written for torchviz."""

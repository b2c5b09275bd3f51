"""gviz in other tools. Each file serves one tool, and only that tool imports it.

`notebook.py` is for Jupyter, `pytest_plugin.py` for pytest, and `torchviz.py` for programs written for torchviz.
"""

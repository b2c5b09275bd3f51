"""Real PyTorch under the debugger; the one package that imports it."""

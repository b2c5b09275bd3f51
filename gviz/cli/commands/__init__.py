"""Every command, a file of its name each; `gviz.cli.main` lists them in the order of the help."""

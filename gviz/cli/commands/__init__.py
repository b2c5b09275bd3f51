"""Every command, one file each; `gviz.cli.main` lists them in the order of the help."""

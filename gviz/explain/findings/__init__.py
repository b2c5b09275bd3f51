"""One file for each kind of finding, or for a few that are told apart in one place; `gviz.explain.table` lists them."""

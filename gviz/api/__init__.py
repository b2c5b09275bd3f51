"""What a program calls: each public name of `gviz` has its home here, and nothing below imports it."""

"""The functions that a program calls: each public name of `gviz` is defined here, and nothing below imports it."""

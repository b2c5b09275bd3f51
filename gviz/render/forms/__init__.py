"""The forms a picture may have, a file for each; `gviz.render.exporters` lists them."""

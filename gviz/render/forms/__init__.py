"""The forms a picture may have, a file for each; `gviz.render.file_formats` lists them."""

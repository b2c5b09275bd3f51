"""The file formats of pictures, one module for each; `gviz.render.file_formats` lists them."""

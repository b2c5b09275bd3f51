"""One array as it was at one moment, and how values are written.

`value` keeps an array: its bytes, its statistics, or its shape. `number_text` writes one number, everywhere the same,
and `value_text` writes a value, all of it or what the room allows. `plain_text` makes any text of a program harmless to
show. Every start imports `plain_text`, so this package imports nothing by itself: `value` needs numpy.
"""

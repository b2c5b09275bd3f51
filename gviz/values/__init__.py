"""One array as it was at one moment, and how values are formatted.

`value` holds an array: its bytes, its statistics, or its shape. `number_text` formats one number, the same everywhere.
`value_text` formats a value, in full or within a width. `plain_text` makes any text of a program safe to show. Every
start imports `plain_text`, so this package imports nothing by itself: `value` needs numpy.
"""

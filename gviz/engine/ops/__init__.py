"""The operations, each declared once, grouped as a reader would look for them."""

"""The way of a nan or inf: where it was born, what carried it, and what is usually written instead."""

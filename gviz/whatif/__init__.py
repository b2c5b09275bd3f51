"""What would have happened: recorded operations run again with a number changed."""

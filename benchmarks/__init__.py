"""What is compared with what. ``python -m benchmarks`` prints the table; nothing here is a test."""

"""What people write for moments, nodes and expressions, and what that means in a timeline."""

"""The loss: its targets, terms, means, masks and signs."""

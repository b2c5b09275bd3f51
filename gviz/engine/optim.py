"""``torch.optim``: parameters updated from their gradients."""

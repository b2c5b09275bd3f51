"""A parameter gets no gradient, or a gradient is lost on its way: why, and what does not reach the optimizer."""

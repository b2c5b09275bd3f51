"""The numbers of a gradient: zero, nan, inf, vanishing, exploding, changed by a hook, a sum over passes."""

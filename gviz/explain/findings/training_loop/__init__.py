"""The order of a training loop, the optimizer, its steps and schedules, and what the loop carries along."""

"""Adapters to other frameworks; each emits the events of `gviz.events`.

`pytorch` is the adapter for PyTorch. `recording_scope.py` has the user's choice of what is recorded, and
`monitor_budget.py` decides which iterations of a long run are recorded whole.
"""

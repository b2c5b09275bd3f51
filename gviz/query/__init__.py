"""Resolves the texts that users type for moments, nodes and expressions.

How moments, places, events and conditions are written is `gviz.query_syntax`, which needs no timeline. This package
resolves them in a timeline. Read `nodes` first (which nodes had a name, and which node a text refers to), then
`moments` (which event a text refers to). `expressions` evaluates arithmetic over tensors.

Example: ``goto x.grad`` asks `event_at` for the moment ``x.grad``. It is not a number, word or stop, so `node_at` asks
`NamedNodes` for the last node named ``x``. The moment is the event at which its last contribution arrived.
"""

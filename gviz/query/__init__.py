"""What people write for moments, nodes and expressions, and what it means in a timeline.

The syntax of places, events and conditions is `gviz.where`, which needs no timeline. This room resolves it. Read
`names` first (which nodes had a name, and when), then `nodes` (which node a text means), then `moments` (which event a
text means). `expressions` evaluates arithmetic over tensors; `vocabulary` lists the words for the help.

A walk: ``goto x.grad`` asks `event_at` for the moment ``x.grad``. It is no number, word or stop, so `node_at` asks
`NamedNodes` for the last node called ``x``, and the moment is the event at which the last part of its gradient arrived.
"""

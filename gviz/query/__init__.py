"""Resolves the texts that users type for moments, nodes and expressions.

The syntax of places, events and conditions is `gviz.query_syntax`, which needs no timeline. This package resolves it in
a timeline. Read `name_lookup` first (which nodes had a name, and when), then `node_lookup` (which node a text refers
to), then `moment_lookup` (which event a text refers to). `expressions` evaluates arithmetic over tensors, and
`moment_words` has the words for the help.

Example: ``goto x.grad`` asks `event_at` for the moment ``x.grad``. It is not a number, word or stop, so `node_at` asks
`NamedNodes` for the last node named ``x``. The moment is the event at which its last contribution arrived.
"""

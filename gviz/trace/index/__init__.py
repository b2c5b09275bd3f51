"""Sorted columns in which a timeline finds the state of any node at any moment by binary search, without a replay.

Read first:

1. `search_index.py`: `Index`, the columns, and how an event is added to them.
2. `change_lists.py`: `ChangeList`, one kind of column: which events changed which thing.
3. `node_state.py`: `NodeStates`, which finds the state of a node at a moment in these columns.

The walk of one event: event 7 writes to the memory (storage) 3. `Index.extend` reads it from the log and adds the pair
``(3, 7)`` to the change list of memory. What an event changes is defined once, in `gviz.events.event_effects`. For the
state at moment 9 of a node whose output uses storage 3, `NodeStates` searches this list for the last event up to 9,
finds 7, and takes the value from that event. A clean close stores the columns in the trace, so that a reader does not
rebuild them (`event_columns.py`, `search_index.restored`).

`reference_checks.py` validates the node numbers that events of an untrusted file refer to. `threads.py` has the
backward pass, the rule and the module call in which each event happened; `backward_reach.py` has the nodes that a
pass will reach.
"""

"""Adapters to other frameworks; each emits the events of `gviz.events`."""

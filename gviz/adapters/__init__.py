"""Other frameworks under the same debugger: each says the events of `gviz.events`."""

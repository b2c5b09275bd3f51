"""The data, and states outside of the graph: buffers, copies of states, modes, loading, replicas."""

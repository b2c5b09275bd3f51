"""Questions answered from a timeline: facts with event numbers, never a picture."""

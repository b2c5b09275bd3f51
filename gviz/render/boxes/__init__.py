"""The boxes and lines of a graph, which do not depend on the moment, and their text at one moment."""

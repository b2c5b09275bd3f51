"""Why a program cannot become a static graph, and what to write instead."""

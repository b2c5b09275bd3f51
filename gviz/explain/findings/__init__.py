"""The findings, by the symptom that a user sees; `gviz.explain.finding_kinds` lists them with their order and levels.

A file has three sorts of functions, which the table names. An *answer* takes a `Question` about a node and returns the
finding, or None if another kind answers better. An *explanation* does so for a `Failure`. A *search* takes a `Survey`
of the whole recording and yields findings; between them it may yield None, so that a screen stays responsive.
"""

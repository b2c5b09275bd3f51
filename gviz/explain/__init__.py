"""Answers from a timeline: why a number is what it is, what is wrong, and what would follow from another number.

An answer is a `Finding`: a text with its events, its nodes and the facts that support it. Answers are read from the
recording; the program never runs again. (What-if, gradient checks and a few findings run recorded operations again:
`gviz.rerun`.)

Read first:

1. `finding_kinds`: the table of findings, with name, level, meaning, and the functions that find each.
2. `typed_question`: what a user types (``x.grad``, ``loss``, ``step``); `why` finds the first kind that answers.
3. `check`: every search of the table over a whole recording (`recording_survey.Survey`). `overlapping_findings` has the
   rules by which a check leaves out what only follows from another finding.

The findings are in `findings/`, by the symptom that a user sees: no gradient, zero, nan, an error, the loss, the loop.
They share `outgoing_gradients` (what a backward rule sends, with numbers), `pass_contributions` (what arrived in one
pass, the sum, and how much of it each loss sent), `grad_history` (what passes and writes did to a ``.grad``),
`value_computation` (how a value was computed), `display_names` (names of nodes), `source_frames` (places in the
program), `iteration_words`, `tracking`, `parameter_updates` and `program_text`. `node_facts` and `event_description`
use the same modules for the debugger.

A walk: ``gviz why x.grad`` reaches `typed_question.answer` with the text ``x.grad``. `gviz.query` finds the node
``#1 x`` and the aspect ``grad``. `why` asks `node_question`, which looks at the state of ``#1`` and returns the topic
``gradient``. Of the kinds with that topic the first ones decline (the gradient is not zero, the program did not write
it), and `grad_sum_over_passes.grad_sum` answers: one line for each contribution,
``+= 3 from #4 y = mul at demo.py:3: g * y = 1 * 3``, made by `outgoing_gradients`.
"""

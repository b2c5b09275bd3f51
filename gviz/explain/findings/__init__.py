"""The findings, by the symptom that a user sees; `gviz.explain.finding_kinds` lists them with their order and levels.

A file has three sorts of functions, which the table names. An *answer* takes a `Question` about a node and returns the
finding, or None if another kind answers better. An *explanation* does so for a `Failure`. A *search* takes a `Survey`
of the whole recording and yields findings; between them it may yield None, so that a screen stays responsive.

| folder | what a person sees |
|---|---|
| `errors` | the program ended with an error |
| `missing_gradient` | no gradient, or one that is lost on its way |
| `gradient_values` | a gradient that is zero, nan, too small, too large, changed by a hook |
| `training_loop` | the order of the loop, the optimizer and its schedule, states that the loop carries along |
| `loss` | targets, terms, means, masks and signs of a loss |
| `model` | attention, softmax, normalization, recurrent layers, the order of dimensions |
| `state_and_data` | data, buffers, modes, copies and loading of states |
| `custom_functions` | backward rules of the program, second derivatives |
"""

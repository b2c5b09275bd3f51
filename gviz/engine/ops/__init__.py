"""The operations: each is declared once, in the chapter of PyTorch's documentation in which a reader looks for it.

A declaration (`gviz.engine.op.Op`) says how arrays are computed, one backward rule per input, what is saved, the
formula that people read, and an example that the tests try. `surface.derive` offers it as ``torch.<name>`` and
``Tensor.<name>``. Where PyTorch's arguments are not simply the operation's, a hand-written function carries ``@front``.

Read first `arithmetic` (``x * y``, from its declaration to the operator), then `reductions` (one function that is
several operations) and `shape` (results that share memory).

| chapter | files |
|---|---|
| pointwise | `arithmetic`, `elementary_functions`, `comparison`, `activations` |
| reductions | `reductions`, `extremes`, `sorting` |
| indexing, slicing, joining | `shape`, `indexing`, `gathering`, `joining`, `diagonals`, `embedding` |
| linear algebra | `matrix_products`, `einsum`, `linear_algebra` |
| networks | `convolution`, `pooling`, `images`, `normalization`, `attention`, `losses` |
| memory | `copying`, `strided` (a view as plain memory), `properties` (what a tensor is) |
| random sampling | `sampling` |

``x * y``: the operator ``Tensor.__mul__``, put there by `arithmetic`, calls `apply` with the declaration ``mul``; that
computes ``mul.forward`` on the two arrays and, if a gradient may be wanted, makes a ``MulBackward0`` which keeps what
the rules of ``mul`` name. In the backward pass the node calls these rules.

Three files serve the others: `_examples`, `_kernels` (work on arrays), `_declaration` (short forms).
"""

"""The operations, each declared once, in the chapter of PyTorch's documentation where a reader looks for it.

A declaration (`gviz.engine.op.Op`) defines the computation on arrays, one backward rule per input, what is saved, the
formula for readers, and an example that the tests run. `functions_and_methods.derive` makes it public as
``torch.<name>`` and ``Tensor.<name>``. Where the arguments of PyTorch are not simply those of the operation, a
hand-written function has ``@front``.

Read first `arithmetic` (``x * y``, from its declaration to the operator), then `reductions` (one function that is
several operations) and `shape` (results that share memory).

| chapter | files |
|---|---|
| pointwise | `arithmetic`, `elementary_functions`, `comparison`, `activations` |
| reductions | `reductions`, `products`, `statistics`, `norms_and_distances`, `cumulative`, `extremes`, `sorting` |
| indexing, slicing, joining | `shape`, `indexing`, `gathering`, `joining`, `diagonals`, `embedding` |
| linear algebra | `matrix_products`, `einsum`, `linear_algebra` |
| networks | `convolution`, `pooling`, `images`, `normalization`, `attention`, `losses` |
| memory | `copying`, `strided` (a view as plain memory), `properties` (what a tensor is) |
| random sampling | `random_draws` |

For ``x * y``, the operator ``Tensor.__mul__``, defined by `arithmetic`, calls `apply` with the declaration ``mul``.
This computes ``mul.forward`` on the two arrays and, if a gradient may be needed, makes a ``MulBackward0`` that saves
what the rules of ``mul`` use. In the backward pass the node calls these rules.

Four files are helpers: `_examples`, `_kernels` (work on arrays), `_declaration` (short forms of declarations) and
`_reduction_arguments` (`dim` and `dtype` of reductions).
"""

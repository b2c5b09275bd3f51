"""A torch-shaped autograd on numpy: ``import gviz.engine as torch``.

Everything that can be imported from here has PyTorch's name and behaves as PyTorch does. docs/differences.md lists the
exceptions. Read first, in this order:

1. `op`: what an operation is, declared once (`Op`, `Rule`), and how one runs (`apply`).
2. `node`: the nodes of the backward graph, one for each tracked operation and one for each leaf.
3. `backward`: the backward pass (`Pass`), and how a gradient is added to ``.grad``.

The walk of ``y = x * x`` and ``y.backward()``:

* `surface` has put the operator into `Tensor` when `ops.arithmetic` declared ``mul``; it hands both tensors to `apply`.
* `apply` computes the result with numpy and makes a tensor of it (`tensor`). Because ``x`` requires a gradient, it also
  makes a node, with an edge to the node of each input and with the tensors that the rules will need.
* While somebody listens, `apply` has `emission` report the node as an event. Without a listener that costs one test.
* ``y.backward()`` starts a `Pass`. This counts the edges that lead to each node, begins at ``y``'s node with a gradient
  of one, and runs each node when all its contributions have arrived. ``mul`` has two rules; each sends ``g * x``.
* At the leaf ``x`` the pass adds the sum to ``.grad``, and frees what each node had saved as it goes.

Around this heart: `ops` declares the operations by the chapters of PyTorch's documentation; `nn`, `optim` and `jit` are
built on them; `views` and `memory` say which tensors share memory and what a write in place does; `arguments` reads
calls as PyTorch does, and `messages` has its words for errors.
"""

# ruff: noqa: F403  # the namespace is what the modules declare in `__all__`

from __future__ import annotations

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import TYPE_CHECKING

from gviz.engine import autograd as autograd
from gviz.engine import linalg as linalg
from gviz.engine import nn as nn
from gviz.engine import optim as optim
from gviz.engine import random as random
from gviz.engine import version as version
from gviz.engine.anomaly import *
from gviz.engine.creation import *
from gviz.engine.devices import accelerator as accelerator
from gviz.engine.devices import backends as backends
from gviz.engine.devices import device as device
from gviz.engine.devices import mps as mps
from gviz.engine.devices import xpu as xpu
from gviz.engine.dtypes import *
from gviz.engine.dtypes import bool_ as bool
from gviz.engine.dtypes import float_ as float
from gviz.engine.dtypes import int_ as int
from gviz.engine.functions import *
from gviz.engine.layout import *
from gviz.engine.legacy import *
from gviz.engine.modes import *
from gviz.engine.printing import *
from gviz.engine.promotion import *
from gviz.engine.random import *
from gviz.engine.sampling import *
from gviz.engine.settings import *
from gviz.engine.size import Size as Size
from gviz.engine.tensor import Tensor as Tensor
from gviz.engine.unsupported_methods import offers as _offers  # after all that a tensor has
from gviz.engine.unsupported_names import lookup_in
from gviz.engine.version import __version__ as __version__

if TYPE_CHECKING:
    from gviz.engine import cuda as cuda
    from gviz.engine import jit as jit
    from gviz.engine import utils as utils
    from gviz.engine.serialization import load as load
    from gviz.engine.serialization import save as save

newaxis = None

_ON_DEMAND = {
    "cuda": "gviz.engine.cuda",
    "jit": "gviz.engine.jit",
    "utils": "gviz.engine.utils",
    "load": "gviz.engine.serialization.load",
    "save": "gviz.engine.serialization.save",
}

__getattr__ = lookup_in(__name__, _ON_DEMAND)


def __dir__() -> list[str]:
    """What it has, and what it imports on demand."""
    return sorted({*globals(), *_ON_DEMAND})

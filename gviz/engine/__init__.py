"""A torch-shaped autograd on NumPy: ``import gviz.engine as torch``.

Everything that can be imported from here has PyTorch's name and behaves as in PyTorch. docs/differences.md lists the
exceptions. Five files are the core. Read them in this order:

1. `op`: what an operation is, declared once (`Op`, `Rule`), and how one runs (`apply`).
2. `tensor`: an array with its place in the graph and its gradient (`Tensor`), and the end of a graph at a leaf
   (`AccumulateGrad`).
3. `node`: the graph node of a tracked operation (`Node`): edges to the nodes of its inputs, saved tensors, hooks.
4. `backward`: ``backward()`` and the backward pass through the graph (`Pass`).
5. `functions_and_methods`: the functions and methods that users call, made from the declared operations.

The steps of ``y = x * x`` and ``y.backward()`` for a leaf ``x`` that requires a gradient:

    y = x * x      methods   __mul__       the method that exists since `ops.arithmetic` declared mul
                   op        apply         runs mul on the tensors x and x
                   op        compute       multiplies the two arrays with NumPy
                   tensor    new_tensor    makes y, a tensor around the result
                   tensor    Tensor._edge  where a gradient of x goes: its AccumulateGrad
                   op        apply         makes y's node, a MulBackward0, with two such edges and x saved twice
    y.backward()   backward  backward      starts a pass from y's node with a gradient of 1
                   backward  Pass.run      counts the edges to each node, runs a node when all contributions arrived
                   op        vjp_of        the two backward rules of mul: each returns g * x
                   node      Node.release  releases what the node saved
                   backward  accumulate    adds the sum of both contributions, 2 * x, to x.grad

While a recording listens, each of these steps also emits an event, see `instrumentation`. Without a listener that costs
one test.

Files import in one direction; the layer test has their order. What is built on `Tensor` but needed by it is registered
there: `functions_and_methods` adds the methods of operations to `Methods`, and other files add functions to
`tensor.callbacks`. Around the core, `ops` declares the operations by the chapters of PyTorch's documentation;
`nn`, `optim` and `jit` are built on them. `views` defines in-place writes and views that follow them, `array_storage`
where an array is in its memory, and `memory_format` its strides.
`argument_parser` checks the arguments of calls by their `signatures`, as PyTorch does, `arguments` has the sizes and
options of factories, `number_conversion` refuses numbers that a dtype cannot hold, and `messages` has PyTorch's error
texts.
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
from gviz.engine.anomaly_detection import *
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
from gviz.engine.legacy_constructors import *
from gviz.engine.memory_format import *
from gviz.engine.modes import *
from gviz.engine.namespace import *
from gviz.engine.printing import *
from gviz.engine.promotion import *
from gviz.engine.random import *
from gviz.engine.random_tensors import *
from gviz.engine.settings import *
from gviz.engine.size import Size as Size
from gviz.engine.tensor import Tensor as Tensor
from gviz.engine.unsupported_methods import offers as _offers  # after everything that a tensor has
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
    """The names defined here and those imported on demand."""
    return sorted({*globals(), *_ON_DEMAND})

"""A torch-shaped autograd on numpy: ``import gviz.engine as torch``."""

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
from gviz.engine.unsupported_methods import Lacking as _Lacking  # after all that a tensor has
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

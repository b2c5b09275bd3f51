"""``torch.nn.functional``."""

# ruff: noqa: F403  # the namespace is what the modules declare in `__all__`

from __future__ import annotations

from gviz.engine.missing import lookup_in
from gviz.engine.nn.functional.activation import *
from gviz.engine.nn.functional.adaptive_pooling import *
from gviz.engine.nn.functional.attention import *
from gviz.engine.nn.functional.bilinear import *
from gviz.engine.nn.functional.class_loss import *
from gviz.engine.nn.functional.convolution import *
from gviz.engine.nn.functional.distance import *
from gviz.engine.nn.functional.dropout import *
from gviz.engine.nn.functional.embedding import *
from gviz.engine.nn.functional.loss import *
from gviz.engine.nn.functional.margin_loss import *
from gviz.engine.nn.functional.norm_pooling import *
from gviz.engine.nn.functional.normalization import *
from gviz.engine.nn.functional.pooling import *
from gviz.engine.nn.functional.recurrent import *
from gviz.engine.nn.functional.softmax import *
from gviz.engine.nn.functional.unpooling import *
from gviz.engine.nn.functional.vision import *
from gviz.engine.ops.matrix import linear as linear
from gviz.engine.ops.padding import pad as pad
from gviz.engine.wanting import want_tensors as _want_tensors

_want_tensors(globals())

__getattr__ = lookup_in(__name__)

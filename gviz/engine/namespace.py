"""The functions of the namespace, made from the declarations. Importing this module declares every operation."""

from __future__ import annotations

from gviz.engine import backward
from gviz.engine.functions_and_methods import FUNCTIONS, front
from gviz.engine.methods import Methods
from gviz.engine.nn import functional as functional
from gviz.engine.ops import activations as activations
from gviz.engine.ops import arithmetic as arithmetic
from gviz.engine.ops import attention as attention
from gviz.engine.ops import comparison as comparison
from gviz.engine.ops import convolution as convolution
from gviz.engine.ops import copying as copying
from gviz.engine.ops import cumulative as cumulative
from gviz.engine.ops import diagonals as diagonals
from gviz.engine.ops import einsum as einsum
from gviz.engine.ops import elementary_functions as elementary_functions
from gviz.engine.ops import embedding as embedding
from gviz.engine.ops import extremes as extremes
from gviz.engine.ops import gathering as gathering
from gviz.engine.ops import images as images
from gviz.engine.ops import indexing as indexing
from gviz.engine.ops import joining as joining
from gviz.engine.ops import linear_algebra as linear_algebra
from gviz.engine.ops import losses as losses
from gviz.engine.ops import matrix_products as matrix_products
from gviz.engine.ops import normalization as normalization
from gviz.engine.ops import norms_and_distances as norms_and_distances
from gviz.engine.ops import pooling as pooling
from gviz.engine.ops import products as products
from gviz.engine.ops import properties as properties
from gviz.engine.ops import random_draws as random_draws
from gviz.engine.ops import reductions as reductions
from gviz.engine.ops import shape as shape
from gviz.engine.ops import sorting as sorting
from gviz.engine.ops import statistics as statistics
from gviz.engine.ops import strided as strided

front("backward", function=False)(backward.backward)

WRITES = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_
ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_
frac_ index_put_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_
resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""
"""The in-place methods that PyTorch also has as functions: ``torch.relu_(x)``."""

for name in WRITES.split():
    front(name, method=False)(vars(Methods)[name])

for name in ("celu_", "rrelu_", "selu_", "threshold_"):
    front(name, method=False)(vars(functional)[name])

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)

"""The functions of the namespace, from the declarations. Importing this module declares every operation."""

from __future__ import annotations

from gviz.engine import backward
from gviz.engine.methods import Methods
from gviz.engine.nn import functional as functional
from gviz.engine.ops import any_all as any_all
from gviz.engine.ops import arithmetic as arithmetic
from gviz.engine.ops import axes as axes
from gviz.engine.ops import casting as casting
from gviz.engine.ops import comparison as comparison
from gviz.engine.ops import counting as counting
from gviz.engine.ops import cross as cross
from gviz.engine.ops import cumulative as cumulative
from gviz.engine.ops import decompositions as decompositions
from gviz.engine.ops import diagonals as diagonals
from gviz.engine.ops import division as division
from gviz.engine.ops import einsum as einsum
from gviz.engine.ops import entries as entries
from gviz.engine.ops import exponential as exponential
from gviz.engine.ops import extremes as extremes
from gviz.engine.ops import flattening as flattening
from gviz.engine.ops import flipping as flipping
from gviz.engine.ops import fused as fused
from gviz.engine.ops import gathering as gathering
from gviz.engine.ops import grids as grids
from gviz.engine.ops import indexing as indexing
from gviz.engine.ops import integration as integration
from gviz.engine.ops import joining as joining
from gviz.engine.ops import limits as limits
from gviz.engine.ops import logic as logic
from gviz.engine.ops import loss as loss
from gviz.engine.ops import masking as masking
from gviz.engine.ops import matrix as matrix
from gviz.engine.ops import matrix_functions as matrix_functions
from gviz.engine.ops import matrix_sums as matrix_sums
from gviz.engine.ops import membership as membership
from gviz.engine.ops import memory as memory
from gviz.engine.ops import norms as norms
from gviz.engine.ops import padding as padding
from gviz.engine.ops import part_scattering as part_scattering
from gviz.engine.ops import picking as picking
from gviz.engine.ops import powers as powers
from gviz.engine.ops import products as products
from gviz.engine.ops import pseudo_inverses as pseudo_inverses
from gviz.engine.ops import quantiles as quantiles
from gviz.engine.ops import questions as questions
from gviz.engine.ops import random as random
from gviz.engine.ops import ranking as ranking
from gviz.engine.ops import reduction as reduction
from gviz.engine.ops import repeating as repeating
from gviz.engine.ops import rounding as rounding
from gviz.engine.ops import scaled_sums as scaled_sums
from gviz.engine.ops import scatter_reduce as scatter_reduce
from gviz.engine.ops import scattering as scattering
from gviz.engine.ops import selecting as selecting
from gviz.engine.ops import shape as shape
from gviz.engine.ops import shape_in_place as shape_in_place
from gviz.engine.ops import signs as signs
from gviz.engine.ops import sliding as sliding
from gviz.engine.ops import solving as solving
from gviz.engine.ops import sorting as sorting
from gviz.engine.ops import special as special
from gviz.engine.ops import splitting as splitting
from gviz.engine.ops import statistics as statistics
from gviz.engine.ops import strided as strided
from gviz.engine.ops import tensor_products as tensor_products
from gviz.engine.ops import triangles as triangles
from gviz.engine.ops import trigonometric as trigonometric
from gviz.engine.surface import FUNCTIONS, front

front("backward", function=False)(backward.backward)

WRITES = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_
ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_
frac_ index_put_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_
resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""
"""The methods that write which PyTorch has as functions too: ``torch.relu_(x)``."""

for name in WRITES.split():
    front(name, method=False)(vars(Methods)[name])

for name in ("celu_", "rrelu_", "selu_", "threshold_"):
    front(name, method=False)(vars(functional)[name])

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)

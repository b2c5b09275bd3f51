"""``torch.nn.utils``: what is done to gradients and parameters from outside."""

from gviz.engine.missing import lookup_in
from gviz.engine.nn.utils import rnn as rnn
from gviz.engine.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from gviz.engine.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from gviz.engine.nn.utils.clipping import clip_grads_with_norm_ as clip_grads_with_norm_
from gviz.engine.nn.utils.clipping import get_total_norm as get_total_norm
from gviz.engine.nn.utils.vectors import parameters_to_vector as parameters_to_vector
from gviz.engine.nn.utils.vectors import vector_to_parameters as vector_to_parameters

__getattr__ = lookup_in(__name__)

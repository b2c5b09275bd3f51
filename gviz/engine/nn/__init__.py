"""``torch.nn``: modules with parameters."""

from gviz.engine.missing import lookup_in
from gviz.engine.nn import functional as functional
from gviz.engine.nn import init as init
from gviz.engine.nn import modules as modules
from gviz.engine.nn.activation import ReLU as ReLU
from gviz.engine.nn.activation import Sigmoid as Sigmoid
from gviz.engine.nn.activation import Tanh as Tanh
from gviz.engine.nn.containers import ModuleDict as ModuleDict
from gviz.engine.nn.containers import ModuleList as ModuleList
from gviz.engine.nn.containers import Sequential as Sequential
from gviz.engine.nn.flatten import Flatten as Flatten
from gviz.engine.nn.linear import Identity as Identity
from gviz.engine.nn.linear import Linear as Linear
from gviz.engine.nn.loss import MSELoss as MSELoss
from gviz.engine.nn.module import Module as Module
from gviz.engine.nn.parameter import Buffer as Buffer
from gviz.engine.nn.parameter import Parameter as Parameter
from gviz.engine.nn.parameter_containers import ParameterDict as ParameterDict
from gviz.engine.nn.parameter_containers import ParameterList as ParameterList

__getattr__ = lookup_in(__name__)

"""``torch.nn.modules``: where PyTorch keeps its modules, for programs that look for them there."""

from gviz.engine.missing import lookup_in
from gviz.engine.nn import module as module
from gviz.engine.nn.containers import ModuleDict as ModuleDict
from gviz.engine.nn.containers import ModuleList as ModuleList
from gviz.engine.nn.containers import Sequential as Sequential
from gviz.engine.nn.module import Module as Module

__getattr__ = lookup_in(__name__)

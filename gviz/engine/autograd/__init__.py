"""``torch.autograd``."""

from __future__ import annotations

from gviz.engine.autograd import anomaly_mode as anomaly_mode
from gviz.engine.autograd import functional as functional
from gviz.engine.autograd import graph as graph
from gviz.engine.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from gviz.engine.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
from gviz.engine.autograd.function import Function as Function
from gviz.engine.autograd.grad import backward as backward
from gviz.engine.autograd.grad import grad as grad
from gviz.engine.autograd.gradcheck import gradcheck as gradcheck
from gviz.engine.autograd.gradcheck import gradgradcheck as gradgradcheck
from gviz.engine.autograd.variable import Variable as Variable
from gviz.engine.autograd.variable import variable as variable
from gviz.engine.modes import enable_grad as enable_grad
from gviz.engine.modes import no_grad as no_grad
from gviz.engine.modes import set_grad_enabled as set_grad_enabled
from gviz.engine.unsupported_names import lookup_in

__getattr__ = lookup_in(__name__)

"""``torch.backends``: switches that programs set and that change nothing here."""

from __future__ import annotations

from gviz.engine.backends import cuda as cuda
from gviz.engine.backends import cudnn as cudnn
from gviz.engine.backends import mkl as mkl
from gviz.engine.backends import mps as mps
from gviz.engine.missing import lookup_in

__getattr__ = lookup_in(__name__)

"""``torch.optim``: parameters updated from their gradients."""

from gviz.engine.missing import lookup_in
from gviz.engine.optim import lr_scheduler as lr_scheduler
from gviz.engine.optim.adadelta import Adadelta as Adadelta
from gviz.engine.optim.adagrad import Adagrad as Adagrad
from gviz.engine.optim.adam import Adam as Adam
from gviz.engine.optim.adamax import Adamax as Adamax
from gviz.engine.optim.adamw import AdamW as AdamW
from gviz.engine.optim.lbfgs import LBFGS as LBFGS
from gviz.engine.optim.nadam import NAdam as NAdam
from gviz.engine.optim.optimizer import Optimizer as Optimizer
from gviz.engine.optim.radam import RAdam as RAdam
from gviz.engine.optim.rmsprop import RMSprop as RMSprop
from gviz.engine.optim.sgd import SGD as SGD

__getattr__ = lookup_in(__name__)

"""``torch.optim``: optimizers, which update parameters from their gradients, and learning-rate schedulers.

Read in this order:

1. ``optimizer.py``: groups, states, hooks, and the loop of a step.
2. ``algorithms.py``: the update rules (SGD, Adam, …), which the loop calls.
3. ``lr_scheduler.py``: learning rates from step to step.

``lbfgs.py`` is the only algorithm with a loop of its own.

The path of one gradient: ``loss.backward()`` stores it in ``parameter.grad``. ``optimizer.step()`` emits the start of
the step, runs the hooks before it, and calls ``SGD.update(parameter, parameter.grad, group)`` with recording disabled.
The rule adds weight decay and momentum, and writes to the parameter in place. The step is then emitted with the
parameters that it updated, and the hooks after it run. ``scheduler.step()`` then writes the next ``lr`` into the
groups.
"""

import sys

from gviz.engine.optim import algorithms, lr_scheduler
from gviz.engine.optim import lbfgs as lbfgs
from gviz.engine.optim.algorithms import SGD as SGD
from gviz.engine.optim.algorithms import Adadelta as Adadelta
from gviz.engine.optim.algorithms import Adagrad as Adagrad
from gviz.engine.optim.algorithms import Adam as Adam
from gviz.engine.optim.algorithms import Adamax as Adamax
from gviz.engine.optim.algorithms import AdamW as AdamW
from gviz.engine.optim.algorithms import NAdam as NAdam
from gviz.engine.optim.algorithms import RAdam as RAdam
from gviz.engine.optim.algorithms import RMSprop as RMSprop
from gviz.engine.optim.lbfgs import LBFGS as LBFGS
from gviz.engine.optim.optimizer import Optimizer as Optimizer
from gviz.engine.unsupported_names import lookup_in

for _name in ["adadelta", "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd"]:
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = algorithms  # PyTorch has a module for each of them
for _name in ["combined", "cosine", "cyclic", "decay", "functions", "one_cycle", "plateau", "scheduler"]:
    # pickles of older versions look for the classes there
    sys.modules[f"{lr_scheduler.__name__}.{_name}"] = lr_scheduler

__getattr__ = lookup_in(__name__)

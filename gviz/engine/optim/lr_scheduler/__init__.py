"""``torch.optim.lr_scheduler``: learning rates that change while training."""

from gviz.engine.missing import lookup_in
from gviz.engine.optim.lr_scheduler.combined import ChainedScheduler as ChainedScheduler
from gviz.engine.optim.lr_scheduler.combined import SequentialLR as SequentialLR
from gviz.engine.optim.lr_scheduler.cosine import CosineAnnealingLR as CosineAnnealingLR
from gviz.engine.optim.lr_scheduler.cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from gviz.engine.optim.lr_scheduler.cyclic import CyclicLR as CyclicLR
from gviz.engine.optim.lr_scheduler.decay import ConstantLR as ConstantLR
from gviz.engine.optim.lr_scheduler.decay import ExponentialLR as ExponentialLR
from gviz.engine.optim.lr_scheduler.decay import LinearLR as LinearLR
from gviz.engine.optim.lr_scheduler.decay import MultiStepLR as MultiStepLR
from gviz.engine.optim.lr_scheduler.decay import PolynomialLR as PolynomialLR
from gviz.engine.optim.lr_scheduler.decay import StepLR as StepLR
from gviz.engine.optim.lr_scheduler.functions import LambdaLR as LambdaLR
from gviz.engine.optim.lr_scheduler.functions import MultiplicativeLR as MultiplicativeLR
from gviz.engine.optim.lr_scheduler.one_cycle import OneCycleLR as OneCycleLR
from gviz.engine.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from gviz.engine.optim.lr_scheduler.scheduler import LRScheduler as LRScheduler

_LRScheduler = LRScheduler
__getattr__ = lookup_in(__name__)

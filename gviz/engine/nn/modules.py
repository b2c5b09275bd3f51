"""``torch.nn.modules``: the path under which PyTorch has its modules."""

from typing import Any

from gviz.engine import nn
from gviz.engine.nn import activation as activation
from gviz.engine.nn import container as container
from gviz.engine.nn import conv as conv
from gviz.engine.nn import distance as distance
from gviz.engine.nn import dropout as dropout
from gviz.engine.nn import embedding, vision
from gviz.engine.nn import linear as linear
from gviz.engine.nn import loss as loss
from gviz.engine.nn import module as module
from gviz.engine.nn import normalization as normalization
from gviz.engine.nn import padding as padding
from gviz.engine.nn import pooling as pooling
from gviz.engine.nn import rnn as rnn
from gviz.engine.nn import transformer as transformer

sparse = embedding
flatten = linear
batchnorm = instancenorm = normalization
channelshuffle = fold = pixelshuffle = upsampling = vision


def __getattr__(name: str) -> Any:
    return getattr(nn, name)

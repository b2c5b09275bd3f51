"""``torch.nn``: modules with parameters, and the functions that they call.

Read in this order:

1. ``module.py``: `Module`, which registers what is assigned to it, and the operations on all of it.
2. ``linear.py``: the smallest family. A module has parameters and options; its ``forward`` calls a function.
3. ``functional.py``: the namespace to which the families add their functions.

A family of layers is one file, with its functions and its modules: ``conv.py``, ``pooling.py``, ``loss.py``, …. One
declaration covers one, two and three dimensions. ``parameter.py`` and ``init.py`` create the initial values of
parameters.

The path of one batch through ``Conv2d``: ``conv(x)`` is `Module.__call__`, which runs hooks and emits the call to a
recording, if there are any. ``Conv2d.forward`` calls ``F.conv2d``. This checks the arguments as PyTorch does, and
applies the operation ``convolution`` of ``gviz/engine/ops``. The operation computes on NumPy arrays and adds a node to
the graph.
"""

# ruff: noqa: F401  # a namespace

import sys

from gviz.engine.nn import functional, init, modules, parameter, utils
from gviz.engine.nn.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from gviz.engine.nn.attention import (
    MultiheadAttention,
)
from gviz.engine.nn.container import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from gviz.engine.nn.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from gviz.engine.nn.distance import (
    CosineSimilarity,
    PairwiseDistance,
)
from gviz.engine.nn.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from gviz.engine.nn.embedding import (
    Embedding,
)
from gviz.engine.nn.linear import (
    Bilinear,
    Flatten,
    Identity,
    Linear,
    Unflatten,
)
from gviz.engine.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PoissonNLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
)
from gviz.engine.nn.module import (
    Module,
)
from gviz.engine.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from gviz.engine.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from gviz.engine.nn.parameter import (
    Buffer,
    Parameter,
)
from gviz.engine.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from gviz.engine.nn.rnn import (
    GRU,
    LSTM,
    RNN,
    GRUCell,
    LSTMCell,
    RNNBase,
    RNNCell,
    RNNCellBase,
)
from gviz.engine.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from gviz.engine.nn.vision import (
    ChannelShuffle,
    Fold,
    PixelShuffle,
    PixelUnshuffle,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)
from gviz.engine.unsupported_names import lookup_in

_HOME = "gviz.engine.nn"  # also if a program has imported this as ``torch.nn``
for _file, _former in {
    "activation": "smooth_activation functional.activation functional.softmax",
    "container": "containers parameter_containers",
    "conv": "functional.convolution",
    "distance": "functional.distance",
    "dropout": "functional.dropout",
    "embedding": "functional.embedding",
    "hooks": "backward_hooks",
    "linear": "flatten functional.bilinear",
    "loss": "margin_loss functional.loss functional.class_loss functional.margin_loss",
    "module": "state",
    "normalization": "batchnorm functional.normalization",
    "pooling": "adaptive_pooling functional.pooling functional.adaptive_pooling functional.norm_pooling "
    "functional.unpooling",
    "rnn": "rnn_cell functional.recurrent",
    "vision": "resampling functional.vision",
}.items():
    for _name in _former.split():  # pickles of older versions of gviz look for classes and functions there
        sys.modules[f"{_HOME}.{_name}"] = sys.modules[f"{_HOME}.{_file}"]

__getattr__ = lookup_in(__name__)

"""``torch.nn``: modules with parameters."""

# ruff: noqa: F401  # a namespace

from gviz.engine.missing import lookup_in
from gviz.engine.nn import functional, init, modules, parameter, utils
from gviz.engine.nn.activation import (
    GLU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Softshrink,
    Threshold,
)
from gviz.engine.nn.adaptive_pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
)
from gviz.engine.nn.attention import MultiheadAttention
from gviz.engine.nn.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from gviz.engine.nn.containers import (
    ModuleDict,
    ModuleList,
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
from gviz.engine.nn.flatten import (
    Flatten,
    Unflatten,
)
from gviz.engine.nn.linear import (
    Bilinear,
    Identity,
    Linear,
)
from gviz.engine.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    PoissonNLLLoss,
    SmoothL1Loss,
)
from gviz.engine.nn.margin_loss import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
)
from gviz.engine.nn.module import (
    Module,
)
from gviz.engine.nn.normalization import (
    GroupNorm,
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
from gviz.engine.nn.parameter_containers import (
    ParameterDict,
    ParameterList,
)
from gviz.engine.nn.pooling import (
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
from gviz.engine.nn.resampling import (
    ChannelShuffle,
    Fold,
    PixelShuffle,
    PixelUnshuffle,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)
from gviz.engine.nn.rnn import GRU, LSTM, RNN, RNNBase
from gviz.engine.nn.rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase
from gviz.engine.nn.smooth_activation import (
    CELU,
    ELU,
    GELU,
    SELU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from gviz.engine.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__getattr__ = lookup_in(__name__)

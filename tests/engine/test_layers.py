"""Every layer against PyTorch: the same weights and inputs give the same output, gradients, buffers and text."""

import pytest
from twin import compare

from gviz.engine import nn

SETUP = """
import warnings
from torch import nn
def fill(module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(float(p.numel())).view(p.shape) * 7 % 11 + i) / 10 - 0.45)
    return module
def some(*shape):
    "Numbers without ties."
    count = 1
    for n in shape: count *= n
    return (((torch.arange(float(count)) * 7919 % 1009) / 1009 - 0.5) * 3).view(shape).requires_grad_()
def whole(high, *shape):
    count = 1
    for n in shape: count *= n
    return (torch.arange(count) * 7 % high).view(shape)
def outputs(result): return [r for r in (result if isinstance(result, (tuple, list)) else (result,)) if r is not None]
def weighted(o): return (o * (torch.arange(float(o.numel())).view(o.shape) % 5 + 1)).sum()
def try_layer(make, inputs):
    layer = fill(make()); print(layer); see([n for n, _ in layer.named_parameters()], [n for n, _ in layer.named_buffers()], list(layer.state_dict()))
    results = outputs(layer(*inputs)); see(*results)
    kept = [o for o in results if o.requires_grad]
    if kept: sum(weighted(o) for o in kept).backward()
    numbers(*[p.grad for p in layer.parameters()], *[t.grad for t in inputs if isinstance(t, torch.Tensor)], *layer.buffers())
"""

ACTIVATIONS = [
    "ReLU()",
    "ReLU(inplace=False)",
    "ReLU6()",
    "LeakyReLU()",
    "LeakyReLU(0.3)",
    "PReLU()",
    "PReLU(4)",
    "RReLU()",
    "Hardtanh()",
    "Hardtanh(-0.3,0.4)",
    "Hardsigmoid()",
    "Hardswish()",
    "Threshold(0.1,2)",
    "Hardshrink()",
    "Hardshrink(0.2)",
    "Softshrink()",
    "GLU()",
    "GLU(1)",
    "Tanh()",
    "Sigmoid()",
    "LogSigmoid()",
    "Softsign()",
    "Tanhshrink()",
    "Softplus()",
    "Softplus(2,1)",
    "GELU()",
    'GELU("tanh")',
    "SiLU()",
    "Mish()",
    "SELU()",
    "ELU()",
    "ELU(0.5)",
    "CELU()",
    "CELU(0.5)",
    "Softmax(1)",
    "Softmax(-1)",
    "Softmin(1)",
    "LogSoftmax(1)",
    "Softmax()",
    "Identity()",
    "Flatten()",
    "Flatten(0,1)",
    "Dropout(0)",
    "Dropout(1.0)",
    "Unflatten(1,(2,2))",
    "Unflatten(-1,[3,2])",
]

LOSSES = [
    ("L1Loss()", "some(3, 4), some(3, 4).detach() * 0.3"),
    ("MSELoss(reduction='sum')", "some(3, 4), some(3, 4).detach() * 0.3"),
    ("SmoothL1Loss(beta=0.5)", "some(3, 4), some(3, 4).detach() * 0.3"),
    ("HuberLoss(delta=0.4)", "some(3, 4), some(3, 4).detach() * 0.3"),
    ("BCELoss()", "some(6).detach().sigmoid().requires_grad_(), whole(2, 6).float()"),
    ("BCELoss(weight=some(6).detach().abs())", "some(6).detach().sigmoid().requires_grad_(), whole(2, 6).float()"),
    ("BCEWithLogitsLoss()", "some(6), whole(2, 6).float()"),
    ("BCEWithLogitsLoss(pos_weight=torch.full((3,), 2.))", "some(2, 3), whole(2, 2, 3).float()"),
    ("NLLLoss()", "some(4, 3).detach().log_softmax(1).requires_grad_(), whole(3, 4)"),
    ("NLLLoss(weight=torch.tensor([1., 2., 3.]), ignore_index=1)", "some(4, 3), whole(3, 4)"),
    ("CrossEntropyLoss()", "some(4, 3), whole(3, 4)"),
    ("CrossEntropyLoss(label_smoothing=0.1, reduction='none')", "some(4, 3), whole(3, 4)"),
    ("CrossEntropyLoss(weight=torch.tensor([1., 2., 3.]))", "some(4, 3, 2), whole(3, 4, 2)"),
    ("KLDivLoss(reduction='batchmean')", "some(4, 3), some(4, 3).detach().softmax(1)"),
    ("KLDivLoss(log_target=True, reduction='sum')", "some(4, 3), some(4, 3).detach()"),
    ("PoissonNLLLoss()", "some(4), whole(3, 4).float()"),
    ("GaussianNLLLoss()", "some(4), whole(3, 4).float(), torch.ones(4)"),
    ("HingeEmbeddingLoss()", "some(4), whole(2, 4).float() * 2 - 1"),
    ("CosineEmbeddingLoss(0.2)", "some(4, 3), some(4, 3).detach() + 1, whole(2, 4).float() * 2 - 1"),
    ("MarginRankingLoss(0.5)", "some(4), some(4).detach() * 0.2, whole(2, 4).float() * 2 - 1"),
    ("SoftMarginLoss()", "some(4), whole(2, 4).float() * 2 - 1"),
    ("MultiLabelMarginLoss()", "some(2, 4), torch.tensor([[3, 0, -1, 1], [0, 1, 2, -1]])"),
    ("MultiLabelSoftMarginLoss()", "some(2, 4), whole(2, 2, 4).float()"),
    ("MultiMarginLoss()", "some(4, 3), whole(3, 4)"),
    ("TripletMarginLoss()", "some(4, 3), some(4, 3).detach() + 1, some(4, 3).detach() * 0.5"),
    ("TripletMarginLoss(swap=True, p=1)", "some(4, 3), some(4, 3).detach() + 1, some(4, 3).detach() * 0.5"),
]

TRANSFORMERS = [
    ("TransformerEncoderLayer(4, 2, 6, dropout=0.)", "some(3, 2, 4)"),
    (
        "TransformerEncoderLayer(4, 2, 6, dropout=0., activation='gelu', norm_first=True, batch_first=True, bias=False)",
        "some(2, 3, 4), nn.Transformer.generate_square_subsequent_mask(3)",
    ),
    (
        "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, 0.), 2, nn.LayerNorm(4), enable_nested_tensor=False)",
        "some(3, 2, 4)",
    ),
    ("TransformerDecoderLayer(4, 2, 6, 0.)", "some(3, 2, 4), some(5, 2, 4)"),
    (
        "TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, 0.), 2)",
        "some(3, 2, 4), some(5, 2, 4), nn.Transformer.generate_square_subsequent_mask(3)",
    ),
    ("Transformer(4, 2, 1, 1, 6, 0.)", "some(3, 2, 4), some(2, 2, 4)"),
]

LSTMS = [
    ("LSTM(3, 4)", "some(5, 2, 3)"),
    ("LSTM(3, 4, 2, bidirectional=True)", "some(5, 2, 3)"),
    ("LSTM(3, 2, batch_first=True, bias=False)", "some(2, 4, 3), (some(1, 2, 2), some(1, 2, 2))"),
    ("LSTM(3, 2)", "some(4, 3)"),
]

LAYERS = [
    ("Linear(3, 2)", "some(4, 3)"),
    ("Linear(0, 2)", "some(4, 0)"),
    ("Linear(2, 2, dtype=torch.float64)", "some(2).detach().double()"),
    ("Embedding(5, 3)", "whole(5, 2, 4)"),
    ("Embedding(5, 3, padding_idx=-2)", "whole(5, 6)"),
    ("Embedding(5, 3, max_norm=0.5)", "whole(5, 6)"),
    ("Embedding(5, 3, scale_grad_by_freq=True)", "whole(5, 8)"),
    ("Embedding.from_pretrained(some(4, 2).detach(), freeze=False)", "whole(4, 3)"),
    ("Conv1d(2, 3, 3)", "some(2, 2, 7)"),
    ("Conv1d(2, 4, 3, stride=2, padding=1, dilation=2, groups=2)", "some(2, 2, 9)"),
    ("Conv1d(2, 3, 3, padding='same')", "some(2, 7)"),
    ("Conv2d(2, 3, 3)", "some(2, 2, 5, 6)"),
    ("Conv2d(2, 3, (3, 2), stride=2, padding=(1, 0), bias=False)", "some(1, 2, 5, 6)"),
    ("Conv2d(2, 2, 3, padding=1, padding_mode='reflect')", "some(1, 2, 5, 6)"),
    ("Conv2d(2, 2, 4, padding='same', padding_mode='circular')", "some(1, 2, 5, 6)"),
    ("Conv2d(4, 4, 3, groups=4, padding='valid')", "some(1, 4, 5, 6)"),
    ("Conv3d(1, 2, 2)", "some(1, 1, 3, 4, 3)"),
    ("ConvTranspose1d(2, 3, 3, stride=2)", "some(1, 2, 4)"),
    ("ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1)", "some(1, 2, 3, 4)"),
    ("ConvTranspose3d(1, 2, 2, bias=False)", "some(1, 1, 2, 3, 2)"),
    ("ConvTranspose2d(2, 4, 2, groups=2)", "some(1, 2, 3, 3)"),
    ("ConvTranspose2d(2, 3, 3, stride=2)", "some(1, 2, 3, 4), [8, 10]"),
    ("MaxPool1d(2)", "some(1, 2, 7)"),
    ("MaxPool2d(2)", "some(1, 2, 5, 6)"),
    ("MaxPool2d(3, stride=2, padding=1, ceil_mode=True)", "some(1, 2, 6, 6)"),
    ("MaxPool2d(2, return_indices=True)", "some(1, 2, 4, 4)"),
    ("MaxPool2d((2, 3), dilation=(1, 2))", "some(2, 2, 6, 7)"),
    ("MaxPool3d(2)", "some(1, 1, 4, 4, 4)"),
    ("AvgPool1d(2)", "some(1, 2, 7)"),
    ("AvgPool2d(2)", "some(1, 2, 5, 6)"),
    ("AvgPool2d(3, 2, 1, count_include_pad=False)", "some(1, 2, 5, 6)"),
    ("AvgPool3d(2)", "some(1, 1, 4, 4, 4)"),
    ("LPPool2d(2, 2)", "some(1, 2, 4, 4)"),
    ("AdaptiveAvgPool1d(3)", "some(1, 2, 7)"),
    ("AdaptiveAvgPool2d((2, 3))", "some(1, 2, 5, 7)"),
    ("AdaptiveAvgPool2d(1)", "some(1, 2, 5, 7)"),
    ("AdaptiveAvgPool3d(2)", "some(1, 1, 4, 3, 5)"),
    ("AdaptiveMaxPool1d(3)", "some(1, 2, 7)"),
    ("AdaptiveMaxPool2d((2, 3))", "some(1, 2, 5, 7)"),
    ("AdaptiveMaxPool2d(2, return_indices=True)", "some(1, 2, 5, 7)"),
    ("MaxUnpool2d(2)", "some(1, 1, 2, 2), torch.tensor([[[[0, 2], [9, 15]]]])"),
    ("ZeroPad1d(1)", "some(1, 2, 3)"),
    ("ZeroPad2d((1, 2, 0, 1))", "some(1, 2, 3, 4)"),
    ("ConstantPad2d(1, 3.5)", "some(1, 2, 3, 4)"),
    ("ConstantPad1d((1, 0), 2)", "some(2, 3)"),
    ("ConstantPad3d(1, 0.5)", "some(1, 1, 2, 2, 2)"),
    ("ReflectionPad1d(2)", "some(1, 2, 4)"),
    ("ReflectionPad2d(1)", "some(1, 2, 3, 4)"),
    ("ReplicationPad1d((1, 2))", "some(2, 4)"),
    ("ReplicationPad2d(1)", "some(1, 2, 3, 4)"),
    ("ReplicationPad3d(1)", "some(1, 1, 2, 2, 3)"),
    ("CircularPad1d(1)", "some(1, 2, 4)"),
    ("CircularPad2d((1, 1, 2, 0))", "some(1, 2, 3, 4)"),
    ("Upsample(scale_factor=2)", "some(1, 2, 3, 4)"),
    ("Upsample(size=(5, 3), mode='bilinear')", "some(1, 2, 3, 4)"),
    ("Upsample(scale_factor=2, mode='bilinear', align_corners=True)", "some(1, 1, 3, 4)"),
    ("UpsamplingNearest2d(scale_factor=2)", "some(1, 1, 2, 3)"),
    ("UpsamplingBilinear2d(size=(4, 4))", "some(1, 1, 2, 3)"),
    ("Upsample(scale_factor=3, mode='linear')", "some(1, 1, 4)"),
    ("PixelShuffle(2)", "some(1, 8, 2, 3)"),
    ("PixelUnshuffle(2)", "some(1, 2, 4, 6)"),
    ("ChannelShuffle(3)", "some(2, 6, 3)"),
    ("ChannelShuffle(1)", "some(2, 2, 1, 2)"),
    ("Bilinear(3, 2, 4)", "some(5, 3), some(5, 2).detach() + 1"),
    ("Bilinear(3, 2, 1, bias=False)", "some(3), some(2).detach() + 1"),
    ("Bilinear(2, 3, 4)", "some(2, 3, 2).transpose(0, 1), some(3, 2, 3)"),
    ("Unfold(2)", "some(1, 2, 3, 4)"),
    ("Unfold((2, 3), padding=1, stride=2)", "some(1, 2, 4, 5)"),
    ("Fold((3, 4), 2)", "some(1, 8, 6)"),
    ("CosineSimilarity()", "some(3, 4), some(3, 4).detach() + 1"),
    ("CosineSimilarity(dim=0)", "some(4), some(4).detach() + 1"),
    ("PairwiseDistance()", "some(3, 4), some(3, 4).detach() + 1"),
    ("LayerNorm(4)", "some(3, 4)"),
    ("LayerNorm((3, 4), eps=1e-3, bias=False)", "some(2, 3, 4)"),
    ("LayerNorm(4, elementwise_affine=False)", "some(3, 4)"),
    ("RMSNorm(4)", "some(3, 4)"),
    ("RMSNorm((3, 4), eps=0.1, elementwise_affine=False)", "some(2, 3, 4)"),
    ("GroupNorm(2, 4)", "some(3, 4, 5)"),
    ("GroupNorm(1, 4, affine=False)", "some(3, 4)"),
    ("LocalResponseNorm(2)", "some(1, 3, 4, 4)"),
    ("BatchNorm1d(4)", "some(5, 4)"),
    ("BatchNorm1d(4, momentum=None)", "some(5, 4, 3)"),
    ("BatchNorm1d(4, affine=False, eps=1e-3)", "some(5, 4)"),
    ("BatchNorm1d(4, track_running_stats=False)", "some(5, 4)"),
    ("BatchNorm1d(4).eval()", "some(5, 4)"),
    ("BatchNorm1d(4, track_running_stats=False).eval()", "some(5, 4)"),
    ("BatchNorm2d(2)", "some(3, 2, 3, 3)"),
    ("BatchNorm3d(2)", "some(2, 2, 2, 2, 2)"),
    ("InstanceNorm1d(3)", "some(2, 3, 4)"),
    ("InstanceNorm1d(3)", "some(3, 4)"),
    ("InstanceNorm2d(2, affine=True, track_running_stats=True)", "some(2, 2, 3, 3)"),
    ("InstanceNorm2d(2, affine=True, track_running_stats=True).eval()", "some(2, 2, 3, 3)"),
    ("InstanceNorm3d(2)", "some(1, 2, 2, 2, 3)"),
    ("RNNCell(3, 4)", "some(2, 3), some(2, 4)"),
    ("RNNCell(3, 4, nonlinearity='relu')", "some(2, 3)"),
    ("RNNCell(3, 4, bias=False)", "some(3)"),
    ("GRUCell(3, 4)", "some(2, 3), some(2, 4)"),
    ("GRUCell(3, 2)", "some(3)"),
    ("LSTMCell(3, 4)", "some(2, 3), (some(2, 4), some(2, 4))"),
    ("LSTMCell(3, 2, bias=False)", "some(3)"),
    ("RNN(3, 4)", "some(5, 2, 3)"),
    ("RNN(3, 4, 2, nonlinearity='relu', bidirectional=True)", "some(5, 2, 3)"),
    ("RNN(3, 2)", "some(4, 3), some(1, 2)"),
    ("GRU(3, 4)", "some(5, 2, 3)"),
    ("GRU(3, 4, 2, bidirectional=True)", "some(5, 2, 3)"),
    ("GRU(3, 2)", "some(4, 3)"),
    ("Embedding(5, 3, norm_type=1.)", "whole(5, 2, 4)"),
    ("MultiheadAttention(4, 2)", "some(3, 2, 4), some(5, 2, 4) * 0.5, some(5, 2, 4)"),
    ("MultiheadAttention(4, 2, batch_first=True, bias=False)", "some(2, 3, 4), some(2, 3, 4), some(2, 3, 4)"),
    ("MultiheadAttention(4, 2, kdim=3, vdim=5)", "some(3, 2, 4), some(4, 2, 3), some(4, 2, 5)"),
    ("MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)", "some(3, 4), some(5, 4), some(5, 4)"),
    ("MultiheadAttention(4, 2)", "some(3, 2, 4), some(3, 2, 4), some(3, 2, 4), whole(2, 2, 3).bool()"),
    ("Softmax2d()", "some(2, 3, 2, 2)"),
    ("PReLU(3)", "some(2, 3, 4)"),
]

REFUSALS = [
    "Conv2d(3, 4, 3, groups=2)",
    "Conv2d(2, 3, 3, groups=2)",
    "Conv2d(1, 1, 1, groups=0)",
    'Conv2d(1, 1, 3, padding="same", stride=2)',
    'ConvTranspose2d(1, 1, 3, padding_mode="reflect")',
    "ConvTranspose2d(2, 3, 3, stride=2)(some(1, 2, 3, 4), [20, 20])",
    "ConvTranspose2d(2, 3, 3)(some(1, 2, 3, 4), [1])",
    "GroupNorm(3, 4)",
    "BatchNorm1d(3)(some(3))",
    "BatchNorm2d(3)(some(2, 3))",
    "BatchNorm3d(3)(some(2, 3))",
    "InstanceNorm2d(3)(some(2, 3))",
    "InstanceNorm1d(3, affine=True)(some(2, 4, 3))",
    "Dropout(2)",
    "Embedding(3, 2, padding_idx=3)",
    "Embedding(3, 2, padding_idx=-4)",
    "Embedding(3, 2, _weight=some(2, 2))",
    "Embedding.from_pretrained(some(3))",
    "Hardtanh(1, 0)",
    "Softmax2d()(some(2, 2))",
    "Unflatten(1, 3)",
    'Unflatten(1, (2, "a"))',
    'HuberLoss(delta="a")',
    "MultiMarginLoss(p=3)",
    "MultiMarginLoss(weight=some(2, 2))",
    "TripletMarginLoss(0)",
    "CircularPad1d(1)(some(2))",
    "Bilinear(0, 1, 1)",
    "Bilinear(2, 3, 4)(some(5, 2), some(3))",
    "Bilinear(2, 3, 4)(some(5, 2), some(4, 3))",
    "Bilinear(2, 3, 4)(some(5, 3), some(5, 3))",
    "Bilinear(2, 3, 4)(some(5, 2), some(5, 2))",
    "Bilinear(2, 3, 4)(some(5, 2), some(5, 3).double())",
    "ChannelShuffle(4)(some(1, 6, 2))",
    "ChannelShuffle(0)(some(1, 6, 2))",
    "ChannelShuffle(1.0)(some(1, 6, 2))",
    "ChannelShuffle(1)(some(6, 2))",
    "L1Loss(size_average=False).reduction",
    "MSELoss(reduce=False).reduction",
    'L1Loss(reduction="no")(some(2), some(2))',
    "CrossEntropyLoss(size_average=True).reduction",
    'RNN(3, 4, nonlinearity="no")',
    "GRU(3, 4, proj_size=2)",
    "LSTM(0, 1)",
    "LSTM(1, 0)",
    'LSTM("a", 1)',
    "LSTM(1, 1, 0)",
    "LSTM(3, 4, proj_size=4)",
    "LSTM(3, 4, proj_size=-1)",
    "RNN(3, 4, dropout=2)",
    "RNN(3, 4, bias=1)",
    "GRU(3, 4, batch_first=1)",
    "RNN(3, 4)(some(3))",
    "GRU(3, 4)(some(2, 2, 2))",
    "GRU(3, 4)(some(2, 2, 3), some(1, 2, 5))",
    "GRU(3, 4)(some(2, 2, 3), some(1, 4))",
    "RNN(3, 4)(some(2, 3), some(1, 1, 4))",
    "LSTM(3, 4)(some(2, 2, 3), (some(1, 2, 4), some(1, 2, 3)))",
    "LSTM(3, 4)(some(2, 3), (some(1, 2, 4), some(1, 2, 4)))",
    "LSTM(3, 4)(some(2, 2, 3), (some(1, 4), some(1, 4)))",
    "GRU(3, 4)(some(2, 2, 3).double())",
    "RNNCell(3, 4)(some(1, 2, 3))",
    "RNNCell(3, 4)(some(2, 3), some(1, 2, 4))",
    'RNNCell(3, 4, nonlinearity="no")(some(2, 3))',
    "LSTMCell(3, 4)(some(2, 3), (some(2, 4), some(1, 2, 4)))",
    "MultiheadAttention(0, 1)",
    "MultiheadAttention(4, 3)",
    'TransformerEncoderLayer(4, 2, activation="no")',
    "Transformer(4, 2, 1, 1, 6)(some(3, 2, 4), some(3, 1, 4))",
    "Transformer(4, 2, 1, 1, 6)(some(3, 2, 4), some(3, 2, 3))",
]


@pytest.mark.torch
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_are_pytorchs(activation):
    name = "RReLU().eval()" if activation == "RReLU()" else activation
    compare(SETUP + f"try_layer(lambda: nn.{name}, [some(3, 4, 6)])", rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(("loss", "inputs"), LOSSES)
def test_losses_are_pytorchs(loss, inputs):
    compare(SETUP + f"try_layer(lambda: nn.{loss}, [{inputs}])", rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_layers_are_pytorchs(layer, inputs):
    compare(SETUP + f"try_layer(lambda: nn.{layer}, [{inputs}])", rtol=1e-5, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("call", REFUSALS)
def test_what_layers_refuse(call):
    compare(SETUP + f"attempt(lambda: nn.{call})")


@pytest.mark.torch
@pytest.mark.parametrize(("layer", "inputs"), LSTMS)
def test_lstms_are_pytorchs(layer, inputs):
    program = f"""
m = fill(nn.{layer}); print(m); see([n for n, _ in m.named_parameters()], [[tuple(p.shape) for p in ps] for ps in m.all_weights])
inputs = [{inputs}]; output, (h, c) = m(*inputs); numbers(output, h, c); (weighted(output) + weighted(h) + weighted(c)).backward(); numbers(inputs[0].grad, *[p.grad for p in m.parameters()])
"""
    compare(SETUP + program, rtol=1e-5, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize(("layer", "inputs"), TRANSFORMERS)
def test_transformers_are_pytorchs(layer, inputs):
    compare(SETUP + f"try_layer(lambda: nn.{layer}, [{inputs}])", rtol=1e-3, atol=1e-3)


def test_what_the_engine_refuses():
    with pytest.raises(RuntimeError, match="no LSTM with projections yet"):
        nn.LSTM(3, 4, proj_size=2)
    with pytest.raises(AttributeError, match=r"no torch\.nn\.LazyLinear yet; it has Linear"):
        nn.LazyLinear(2)

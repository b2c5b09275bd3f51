"""Tensors that do not fit: programs with the commonest errors about shapes and types, their titles and edits."""

import pytest

from gviz.cli.main import run_command

HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]

PROGRAMS = {
    "linear": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(9, 1))
x = torch.randn(5, 4)
loss = net(x).mean()
loss.backward()
""",
        "Sequential.2 (Linear) expects 9 features, but gets 8",
        "let Linear expect 8 features instead of 9",
        "nn.Linear(8, 1)",
    ),
    "cnn": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(400, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc(x)


net = Net()
loss = F.cross_entropy(net(torch.randn(2, 1, 28, 28)), torch.tensor([1, 2]))
""",
        "Net.fc expects 400 features, but gets 676",
        "let Linear expect 676 features instead of 400",
        "nn.Linear(676, 10)",
    ),
    "matmul": (
        """
x = torch.randn(5, 3)
w = torch.randn(2, 3, requires_grad=True)
out = x @ w
""",
        "x (5,3) @ w (2,3): 3 columns do not match 2 rows",
        "transpose the second: (3,2) fits",
        "x @ w.T",
    ),
    "sizes": (
        """
pred = torch.randn(5, 3, requires_grad=True)
y = torch.randn(4)
loss = ((pred - y) ** 2).mean()
""",
        "pred (5,3) does not broadcast with y (4,): 3 against 4",
        "equal, or one of them 1",
        "",
    ),
    "channels": (
        """
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
images = torch.randn(2, 1, 8, 8)
out = net(images)
""",
        "Sequential.0 (Conv2d) expects 3 channels, but gets 1",
        "let Conv2d expect 1 channel instead of 3",
        "nn.Conv2d(1, 8, 3)",
    ),
    "unbatched": (
        """
conv = nn.Conv2d(1, 8, 3)
image = torch.randn(8, 8)
out = conv(image)
""",
        "conv2d expects 3 or 4 dimensions, but image (8,8) has 2",
        ".unsqueeze(0)",
        "",
    ),
    "batch": (
        """
net = nn.Linear(4, 3)
x = torch.randn(5, 4)
y = torch.tensor([0, 1, 2, 0])
loss = F.cross_entropy(net(x), y)
""",
        "5 rows of scores, but 4 labels",
        "one label for each row",
        "",
    ),
    "multi": (
        """
net = nn.Linear(4, 3)
x = torch.randn(5, 4)
y = torch.tensor([[0], [1], [2], [0], [1]])
loss = F.cross_entropy(net(x), y)
""",
        "one label for each row, but y (5,1) has a second dimension",
        "y.squeeze(1)",
        "y.squeeze(1)",
    ),
    "bce": (
        """
net = nn.Linear(4, 1)
x = torch.randn(5, 4)
y = torch.tensor([0., 1, 1, 0, 1])
loss = F.binary_cross_entropy_with_logits(net(x), y)
""",
        "prediction (5,1) and target (5,) must have the same shape",
        ".squeeze(-1) on the prediction",
        "net(x).squeeze(-1)",
    ),
    "embedding": (
        """
emb = nn.Embedding(10, 4)
words = torch.tensor([[1, 2], [3, 10]])
out = emb(words)
""",
        "Embedding has rows 0 to 9, but words (2,2) contains the index 10",
        "11 rows, or indices below 10",
        "nn.Embedding(11, 4)",
    ),
    "embfloat": (
        """
emb = nn.Embedding(10, 4)
words = torch.tensor([1.0, 2.0])
out = emb(words)
""",
        "words (2,) is float32, but the indices must be int64",
        "words.long()",
        "emb(words.long())",
    ),
    "double": (
        """
net = nn.Linear(4, 1)
x = torch.randn(5, 4, dtype=torch.float64)
out = net(x)
""",
        "x (5,4) is float64, but the weight of Linear is float32",
        "x.float()",
        "net(x.float())",
    ),
    "ints": (
        """
net = nn.Linear(4, 1)
x = torch.randint(0, 5, (5, 4))
out = net(x)
""",
        "x (5,4) is int64, but the weight of Linear is float32",
        "x.float()",
        "net(x.float())",
    ),
    "floatlabels": (
        """
net = nn.Linear(4, 3)
x = torch.randn(5, 4)
y = torch.tensor([0., 1, 2, 0, 1])
loss = F.cross_entropy(net(x), y)
""",
        "y (5,) is float32, but the labels must be int64",
        "y.long()",
        "y.long()",
    ),
    "bcelong": (
        """
net = nn.Linear(4, 1)
x = torch.randn(5, 4)
y = torch.tensor([[0], [1], [1], [0], [1]])
loss = F.binary_cross_entropy_with_logits(net(x), y)
""",
        "y (5,1) is int64, but the target must be float32",
        "y.float()",
        "y.float()",
    ),
    "view": (
        """
x = torch.randn(5, 12, 12, requires_grad=True)
flat = x.view(5, 100)
""",
        "x (5,12,12) has 720 elements, but the shape (5,100) has 500",
        "use (5, -1): the shape is then (5,144)",
        "",
    ),
    "stride": (
        """
x = torch.randn(5, 12, requires_grad=True)
flat = x.t().view(60)
""",
        "view cannot join dimensions",
        "reshape instead of view",
        "x.t().reshape(60)",
    ),
    "cat": (
        """
a = torch.randn(2, 3, requires_grad=True)
b = torch.randn(2, 4)
c = torch.cat([a, b])
""",
        "tensors joined in dimension 0 differ in another dimension: 3 against 4",
        "dim=1",
        "torch.cat([a, b], dim=1)",
    ),
    "stack": (
        """
a = torch.randn(3, requires_grad=True)
b = torch.randn(4)
c = torch.stack([a, b])
""",
        "stack expects equal shapes, but gets (3,) and (4,)",
        "pad_sequence",
        "",
    ),
    "norm1": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
out = net(torch.randn(1, 4))
""",
        "Sequential.1 (BatchNorm1d) needs several samples to train, but gets (1,8)",
        "model.eval()",
        "",
    ),
    "normn": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(16))
out = net(torch.randn(3, 4))
""",
        "Sequential.1 (BatchNorm1d) expects 16 features, but gets 8",
        "let BatchNorm1d expect 8 features instead of 16",
        "nn.BatchNorm1d(8)",
    ),
    "layernorm": (
        """
norm = nn.LayerNorm(8)
x = torch.randn(5, 16)
out = norm(x)
""",
        "LayerNorm expects 8 features, but gets 16",
        "let LayerNorm expect 16 features instead of 8",
        "nn.LayerNorm(16)",
    ),
    "dim": (
        """
x = torch.randn(5, 4, requires_grad=True)
out = x.sum(2)
""",
        "x (5,4) has only dimensions 0 to 1, but the program uses dimension 2",
        "use a dimension from -2 to 1",
        "",
    ),
    "scalar": (
        """
x = torch.randn(5, requires_grad=True)
print((x * 2).item())
""",
        "a tensor of 5 elements cannot be converted to one number",
        ".tolist()",
        "",
    ),
    "rnn": (
        """
rnn = nn.LSTM(8, 16, batch_first=True)
x = torch.randn(5, 7, 10)
out, _ = rnn(x)
""",
        "LSTM expects 8 features, but gets 10",
        "let LSTM expect 10 features instead of 8",
        "nn.LSTM(10, 16, batch_first=True)",
    ),
    "bmm": (
        """
q = torch.randn(2, 5, 8, requires_grad=True)
k = torch.randn(2, 5, 8)
att = torch.bmm(q, k)
""",
        "q (2,5,8) @ k (2,5,8): 8 columns do not match 5 rows",
        "transpose the second",
        "torch.bmm(q, k.transpose(-2, -1))",
    ),
    "where": (
        """
m = torch.randn(5, 3) > 0
x = torch.randn(5, 4, requires_grad=True)
out = torch.where(m, x, 0.0)
""",
        "m (5,3) does not broadcast with x (5,4): 3 against 4",
        "equal, or one of them 1",
        "",
    ),
    "mask": (
        """
x = torch.randn(5, 4, requires_grad=True)
m = torch.tensor([True, False, True])
out = x[m]
""",
        "the shapes do not fit together",
        "compare these shapes",
        "",
    ),
    "mse": (
        """
pred = torch.randn(5, 2, requires_grad=True)
y = torch.randn(5, 3)
loss = F.mse_loss(pred, y)
""",
        "pred (5,2) does not broadcast with y (5,3): 2 against 3",
        "equal, or one of them 1",
        "",
    ),
    "vec": (
        """
w = torch.randn(3, requires_grad=True)
x = torch.randn(5, 4)
out = x @ w
""",
        "x (5,4) @ w (3,): 4 columns do not match 3 elements",
        "equal to the length of the vector",
        "",
    ),
    "residual": (
        """
class Block(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.conv = nn.Conv2d(n, m, 3)

    def forward(self, x):
        return x + self.conv(x)


net = Block(4, 4)
out = net(torch.randn(1, 4, 8, 8))
""",
        "does not broadcast with conv2d (1,4,6,6): 8 against 6",
        "use padding=1 in the convolution",
        "nn.Conv2d(n, m, 3, padding=1)",
    ),
    "hidden": (
        """
class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.a = nn.Linear(4, hidden)
        self.b = nn.Linear(hidden * 2, 1)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


out = Net()(torch.randn(3, 2, 4))
""",
        "Net.b expects 32 features, but gets 16",
        "let Linear expect 16 features instead of 32",
        "",
    ),
    "decoder": (
        """
dec = nn.ConvTranspose2d(8, 3, 2)
z = torch.randn(1, 16, 4, 4)
out = dec(z)
""",
        "ConvTranspose2d expects 8 channels, but gets 16",
        "let ConvTranspose2d expect 16 channels instead of 8",
        "nn.ConvTranspose2d(16, 3, 2)",
    ),
    "conv small": (
        """
net = nn.Conv2d(3, 8, 5)
out = net(torch.randn(1, 3, 4, 4))
""",
        "the kernel of Conv2d, 5 x 5, is larger than its input, 4 x 4",
        "larger inputs",
        "",
    ),
    "einsum": (
        """
q = torch.randn(2, 5, 8, requires_grad=True)
k = torch.randn(2, 5, 6)
att = torch.einsum('bid,bjd->bij', q, k)
""",
        "the shapes do not fit together",
        "compare these shapes",
        "",
    ),
    "bilinear": (
        """
a = torch.randn(3, 4, requires_grad=True)
b = torch.randn(3, 4)
s = torch.dot(a, b)
""",
        "the shapes do not fit together",
        "compare these shapes",
        "",
    ),
    "channels last": (
        """
images = torch.randn(2, 8, 8, 3)
out = nn.Conv2d(3, 4, 3)(images)
""",
        "images (2,8,8,3) has its channels last, but a convolution expects them second",
        ".permute(0, 3, 1, 2)",
        "",
    ),
    "gray": (
        """
images = torch.randn(7, 8, 8)
out = nn.Conv2d(1, 4, 3)(images)
""",
        "images (7,8,8) has no channel dimension",
        ".unsqueeze(1)",
        "",
    ),
    "positions": (
        """
scores = torch.randn(2, 5, 10, requires_grad=True)
y = torch.zeros(2, 5, dtype=torch.int64)
loss = F.cross_entropy(scores, y)
""",
        "scores (2,5,10) has its classes last, but the loss expects them second",
        "scores.transpose(1, 2)",
        "scores.transpose(1, 2)",
    ),
    "one hot": (
        """
scores = torch.randn(4, 3, requires_grad=True)
y = torch.eye(3, dtype=torch.int64)[[0, 1, 2, 0]]
loss = F.nll_loss(scores.log_softmax(1), y)
""",
        "one label for each row, but y (4,3) has a second dimension",
        "y.argmax(1)",
        "y.argmax(1)",
    ),
    "column": (
        """
x = torch.randn(5, 3, requires_grad=True)
w = torch.randn(5)
out = x * w
""",
        "x (5,3) does not broadcast with w (5,): 3 against 5",
        "call .unsqueeze(-1) on the second: (5,1) fits",
        "x * w.unsqueeze(-1)",
    ),
    "pooled": (
        """
x = torch.randn(1, 4, 1, 1, requires_grad=True)
out = F.max_pool2d(x, 2)
""",
        "an input of 4 x 1 x 1 is too small: the output would be 4 x 0 x 0",
        "fewer pooling layers",
        "",
    ),
    "negative": (
        """
emb = nn.Embedding(10, 4)
words = torch.tensor([3, -1])
out = emb(words)
""",
        "Embedding has rows 0 to 9, but words (2,) contains the index -1",
        "use indices from 0 to 9",
        "",
    ),
    "later": (
        """
net = nn.Linear(4, 3)
for n in (8, 8, 5):
    x = torch.randn(n, 4)
    y = torch.zeros(8, dtype=torch.int64)
    loss = F.cross_entropy(net(x), y)
    loss.backward()
""",
        "5 rows of scores, but 8 labels",
        "one label for each row",
        "",
    ),
    "after a call": (
        """
net = nn.Linear(4, 3)
x = torch.randn(5, 4)
y = torch.randn(5, 4)
out = net(x) + y
""",
        "linear (5,3) does not broadcast with y (5,4): 3 against 4",
        "equal, or one of them 1",
        "",
    ),
    "size by name": (
        """
n = 9
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(n, 1))
out = net(torch.randn(2, 4))
""",
        "Sequential.1 (Linear) expects 9 features, but gets 8",
        "let Linear expect 8 features instead of 9",
        "",
    ),
    "keyword": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.Linear(out_features=1, in_features=9))
out = net(torch.randn(2, 4))
""",
        "Sequential.1 (Linear) expects 9 features, but gets 8",
        "let Linear expect 8 features instead of 9",
        "in_features=8",
    ),
}


@pytest.fixture
def mismatch(checks):
    def of(text, engine):
        (one,) = checks.of_text(text, engine).found
        return one.finding

    return of


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mismatch_names_what_does_not_fit_and_its_edit_runs(name, engine, mismatch, checks):
    program, title, fix, edited = PROGRAMS[name]
    text = HEAD + program
    found = mismatch(text, engine)
    assert found.kind == "mismatch"
    assert title in found.text
    assert fix in found.fix
    assert found.at is not None
    assert found.parts[-1].kind == "message"
    if not edited:
        assert found.edit is None
        return
    assert edited in found.edit.new
    mended = found.edit.applied(text)
    assert [one for one in checks.of_text(mended, engine).found if one.level == "error"] == []


MESSAGES_OF_CALLS = {
    "a batch first": (
        """
rnn = nn.LSTM(4, 8)
x = torch.randn(7, 5, 4)
h, c = torch.zeros(1, 7, 8), torch.zeros(1, 7, 8)
out, _ = rnn(x, (h, c))
""",
        "mismatch",
        "x (7,5,4) is read as (time, batch, features), but the state fits batch first",
        "batch_first=True in LSTM",
        "nn.LSTM(4, 8, batch_first=True)",
    ),
    "a last batch of one": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
for x in torch.randn(9, 4).split(4):
    net(x).sum().backward()
""",
        "mismatch",
        "Sequential.1 (BatchNorm1d) needs several samples to train",
        "drop_last=True",
        "",
    ),
    "a sample in an evaluation": (
        """
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
net(torch.randn(9, 4)).sum().backward()
with torch.no_grad():
    net(torch.randn(1, 4))
""",
        "mismatch",
        "net gets one sample in train mode; Sequential.1 (BatchNorm1d) needs several",
        "net.eval() before this line",
        "",
    ),
    "a part of the points beside the net": (
        """
points, net = torch.rand(6, 2, requires_grad=True), nn.Linear(2, 1)
t = points[:, 1:]
u = net(points)
torch.autograd.grad(u, t, torch.ones_like(u))
""",
        "failed",
        "u is not computed from t, so there is no gradient",
        "differentiate by points and take the part",
        "",
    ),
    "an input that is not used": (
        """
x, y = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
u = (x * 2).sum()
torch.autograd.grad(u, y)
""",
        "failed",
        "u is not computed from y, so there is no gradient",
        "allow_unused=True",
        "",
    ),
    "LBFGS without a closure": (
        """
w = torch.rand(3, requires_grad=True)
opt = torch.optim.LBFGS([w])
w.sum().backward()
opt.step()
""",
        "failed",
        "LBFGS computes the loss several times in a step",
        "opt.step(closure)",
        "",
    ),
    "a result in a group of several lines": (
        """
net = nn.Linear(2, 1)
codes = torch.rand(3, requires_grad=True) * 0.1
opt = torch.optim.SGD([
    {"params": net.parameters(), "lr": 0.1},
    {"params": [codes], "lr": 0.2},
], lr=0.1)
""",
        "failed",
        "codes = mul is not a leaf: an optimizer cannot change it",
        "detach().requires_grad_()",
        "codes = (torch.rand(3) * 0.1).requires_grad_()",
    ),
    "a message with its advice last": (
        """
packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 5, 2, requires_grad=True), torch.tensor([2, 5, 3]),
                                           batch_first=True)
""",
        "failed",
        "the program failed with RuntimeError",
        "",
        "",
    ),
    "noreturn": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        out = self.fc(x)


net = Net()
loss = net(torch.randn(3, 4)).mean()
loss.backward()
""",
        "failed",
        "Net.forward returned None",
        "return the result",
        "",
    ),
    "lstmtuple": (
        """
net = nn.Sequential(nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1))
out = net(torch.randn(2, 5, 4))
""",
        "failed",
        "a tuple is used where a tensor is needed",
        "use its first element",
        "",
    ),
    "lstmtuple2": (
        """
rnn, fc = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1)
out = rnn(torch.randn(2, 5, 4))
y = fc(out)
""",
        "failed",
        "a tuple is used where a tensor is needed",
        "use its first element",
        "",
    ),
    "nosuper": (
        """
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)


w = torch.ones(2, requires_grad=True)
net = Net()
""",
        "failed",
        "before the module was initialized",
        "super().__init__()",
        "super().__init__()",
    ),
    "noattr": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc2(x)


net = Net()
out = net(torch.randn(3, 4))
""",
        "failed",
        "Net has no attribute fc2",
        "did you mean fc1?",
        "",
    ),
    "numpygrad": (
        """
x = torch.randn(3, requires_grad=True)
y = (x * 2).numpy()
""",
        "failed",
        "a tensor with autograd history cannot become an array",
        "use .detach().numpy()",
        ".detach()",
    ),
    "bool": (
        """
x = torch.randn(3, requires_grad=True)
if x * 2 > 0:
    print('yes')
""",
        "failed",
        "neither true nor false",
        ".any()",
        "",
    ),
    "bcerange": (
        """
net = nn.Linear(4, 1)
x, y = torch.randn(5, 4) * 3, torch.ones(5, 1)
loss = F.binary_cross_entropy(net(x), y)
""",
        "failed",
        "expects probabilities, but gets numbers outside 0 to 1",
        "with_logits",
        "F.binary_cross_entropy_with_logits(net(x), y)",
    ),
    "meanlong": (
        """
x = torch.arange(5)
w = torch.ones(1, requires_grad=True)
m = x.mean()
""",
        "failed",
        "the mean of integers is not an integer",
        ".float()",
        "x.float().mean()",
    ),
    "viewfloat": (
        """
x = torch.randn(4, 6, requires_grad=True)
y = x.view(-1, 6 / 2)
""",
        "failed",
        "a size is a float: / always returns a float",
        "use // instead of /",
        "x.view(-1, 6 // 2)",
    ),
    "longgrad": (
        """
x = torch.arange(5, requires_grad=True)
""",
        "failed",
        "integers cannot have a gradient",
        "dtype=torch.float32",
        "",
    ),
    "permute": (
        """
x = torch.randn(2, 3, 4, requires_grad=True)
y = x.permute(0, 3, 1, 2)
""",
        "mismatch",
        "x (2,3,4) has 3 dimensions, but permute gets 4",
        "every dimension",
        "",
    ),
    "toomany": (
        """
x = torch.randn(2, 3, requires_grad=True)
y = x[:, 0, 1]
""",
        "mismatch",
        "x (2,3) has 2 dimensions, but the program uses more indices",
        "at most one index for each dimension",
        "",
    ),
    "statedict": (
        """
a, b = nn.Sequential(nn.Linear(4, 8)), nn.Sequential(nn.Linear(4, 6))
b(torch.randn(1, 4))
b.load_state_dict(a.state_dict())
""",
        "failed",
        "2 tensors cannot be copied",
        "sizes of the saved one",
        "",
    ),
    "prefix": (
        """
a = nn.Sequential(nn.Linear(4, 8))
state = {'module.' + k: v for k, v in a.state_dict().items()}
a(torch.randn(1, 4))
a.load_state_dict(state)
""",
        "failed",
        "the keys of the state begin with module.",
        "key.removeprefix('module.')",
        "",
    ),
    "optlist": (
        """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net, lr=0.1)
""",
        "failed",
        "an optimizer expects parameters, but gets a model",
        "pass model.parameters() instead of the model",
        "torch.optim.SGD(net.parameters(), lr=0.1)",
    ),
    "listparams": (
        """
ps = [nn.Linear(2, 2), nn.Linear(2, 2)]
opt = torch.optim.SGD(ps, lr=0.1)
""",
        "failed",
        "an optimizer expects parameters, but gets modules",
        "for layer in layers",
        "",
    ),
    "lossclass": (
        """
net = nn.Linear(4, 2)
x, y = torch.randn(5, 4), torch.zeros(5, dtype=torch.long)
loss = nn.CrossEntropyLoss(net(x), y)
loss.backward()
""",
        "failed",
        "the class of a loss expects options",
        "create the loss first",
        "nn.CrossEntropyLoss()(net(x), y)",
    ),
    "inplace exp": (
        """
a = torch.ones(2, 3, requires_grad=True) * 1
a += torch.ones(4, 2, 3)
""",
        "mismatch",
        "an in-place operation cannot store a result (4,2,3) in a tensor (2,3)",
        "returns a new tensor",
        "a = a + torch.ones(4, 2, 3)",
    ),
    "gru": (
        """
rnn = nn.GRU(4, 8, batch_first=True)
h = torch.zeros(1, 3, 8)
out, h = rnn(torch.randn(2, 5, 4), h)
""",
        "mismatch",
        "h (1,3,8) does not fit this input, which needs a state (1,2,8)",
        "(layers, batch, hidden)",
        "",
    ),
    "gather": (
        """
logits = torch.randn(5, 3, requires_grad=True)
y = torch.zeros(5, dtype=torch.long)
out = logits.gather(1, y)
""",
        "mismatch",
        "the index y (5,) needs as many dimensions as logits (5,3)",
        "y.unsqueeze(-1)",
        "logits.gather(1, y.unsqueeze(-1))",
    ),
    "scatter": (
        """
logits = torch.randn(5, 3, requires_grad=True)
y = torch.tensor([0, 1, 2, 3, 0])
out = logits.gather(1, y.unsqueeze(1))
""",
        "mismatch",
        "index 3 is out of range: dimension 1 has size 3",
        "indices from 0 to 2",
        "",
    ),
    "loader": (
        """
from torch.utils.data import DataLoader
data = [torch.randn(n) for n in (3, 3, 4, 3)]
w = torch.ones(3, requires_grad=True)
for x in DataLoader(data, batch_size=4):
    (x * w).sum().backward()
""",
        "mismatch",
        "stack expects equal shapes, but gets (3,) and (4,)",
        "collate_fn",
        "",
    ),
    "nothing kept": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        self.fc(x)


net = Net()
out = net(torch.randn(3, 4))
loss = out.mean()
""",
        "failed",
        "Net.forward returned None",
        "return the result",
        "",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", MESSAGES_OF_CALLS)
def test_a_message_about_a_call_has_a_cause_and_a_fix_that_runs(name, mismatch, checks):
    pytest.importorskip("torch")
    program, kind, title, fix, edited = MESSAGES_OF_CALLS[name]
    text = HEAD + program
    found = mismatch(text, "torch")
    assert (found.kind, title in found.text, fix in found.fix) == (kind, True, True), found
    assert (found.edit is not None) == bool(edited)
    if found.edit is not None:
        assert edited in found.edit.new
        assert [one for one in checks.of_text(found.edit.applied(text), "torch").found if one.level == "error"] == []


@pytest.mark.parametrize("line", ["w.grad.zero_()", "state = None; state.mean()", "v = net(x); w.grad.mean()"])
def test_what_is_none_for_another_reason_is_not_blamed_on_a_module(line, mismatch):
    made = "net, w, x = nn.Linear(2, 1), torch.ones(2, requires_grad=True), torch.ones(1, 2)\nout = net(x)\n"
    found = mismatch(f"{HEAD}{made}{line}\n", "builtin")
    assert "returned None" not in found.text


OTHER = {
    "an index of numpy": "import numpy\nnumpy.zeros(3)[5]",
    "an error of the program": "raise RuntimeError('expected size of the house')",
    "another class": "raise NotImplementedError('size mismatch')",
}


@pytest.mark.parametrize("name", OTHER)
def test_other_errors_stay_what_they_are(name, mismatch):
    text = f"{HEAD}x = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\n{OTHER[name]}\n"
    assert mismatch(text, "builtin").kind == "failed"


MESSAGES = [
    "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    "Expected size for first two dimensions of batch2 tensor to be: [2, 8] but got: [2, 5].",
    "size mismatch, got input (5), mat (5x4), vec (3)",
    "The size of tensor a (8) must match the size of tensor b (6) at non-singleton dimension 3",
    "Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 1, 8, 8] to have 3 channels, but got 1 channels",
    "Given groups=1, weight of size [], expected input[] to have 3 channels, but got 1 channels",
    "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: []",
    "Expected target size [2, 10], got [2, 5]",
    "Expected target size [], got [2]",
    "0D or 1D target tensor expected, multi-target not supported",
    "index out of range in self",
    "expected m1 and m2 to have the same dtype, but got: float != c10::Half",
    "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    "expected target dtype to be Long or Byte, but got Float",
    "shape '[]' is invalid for input of size 720",
    "shape '[0, 3]' is invalid for input of size 720",
    "shape '[-1, 7]' is invalid for input of size 720",
    "stack expects each tensor to be equal size, but got [] at entry 0 and [4] at entry 1",
    "running_mean should contain 8 elements not 16",
    "Given normalized_shape=[8, 8], expected input with shape [*, 8, 8], but got input of size[5, 16]",
    "was expecting embedding dimension of 8, but got 10",
    "Dimension out of range (expected to be in range of [-1, 0], but got 2)",
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_without_its_tensors_is_still_explained(message, mismatch):
    made = (
        "x = torch.ones(2, requires_grad=True)\ny, z = torch.tensor(1.0), torch.ones(0, 3)\n(x * y).sum().backward()\n"
    )
    found = mismatch(f"{HEAD}{made}x, y, z; raise RuntimeError({message!r})\n", "builtin")
    assert message in str(found)
    assert "x @ x" not in str(found)


@pytest.mark.torch
def test_a_norm_of_a_number_is_still_explained(mismatch):
    found = mismatch(f"{HEAD}x = torch.tensor(1.0) * 2\nnn.LayerNorm(8)(x)\n", "torch")
    assert "but got input of size[]" in str(found)


@pytest.mark.torch
def test_data_that_is_in_no_operation_is_known_by_its_name_on_the_line(mismatch, checks):
    text = f"{HEAD}import numpy as np\nx = torch.from_numpy(np.ones((4, 3)))\nnet = nn.Linear(3, 2)\nnet(x)\n"
    found = mismatch(text, "torch")
    assert "the input of Linear is float64, but its weight is float32" in found.text
    assert found.fix == "x.float()"
    assert checks.of_text(found.edit.applied(text), "torch").errors == []


@pytest.mark.torch
def test_a_long_message_is_shown_with_the_advice_at_its_end(mismatch):
    pytest.importorskip("torch")
    found = mismatch(HEAD + MESSAGES_OF_CALLS["a message with its advice last"][0], "torch")
    assert "You can pass `enforce_sorted=False` to pack_padded_sequence" in str(found)


NEAR = {
    "int32 labels": (
        "h, y = torch.randn(5, 8, requires_grad=True), torch.zeros(5, dtype=torch.int32)\nF.cross_entropy(h, y)",
        "y (5,) is int32, but the labels must be int64",
        "y.long()",
    ),
    "labels of a dictionary": (
        "h, b = torch.randn(5, 8, requires_grad=True), {'y': torch.zeros(5)}\nF.cross_entropy(h, b['y'])",
        "the labels must be int64",
        "",
    ),
    "a count in place": (
        "c, p = torch.zeros(3, dtype=torch.int64), torch.rand(3, requires_grad=True)\nc.add_(p.detach())",
        "result type Float can't be cast",
        "",
    ),
    "integers for a result": (
        "c, p = torch.zeros(3, dtype=torch.int64), torch.rand(3, requires_grad=True)\nq = p.detach()\n"
        "torch.mul(c, q, out=c)",
        "result type Float can't be cast",
        "",
    ),
    "integers for a result of integers": (
        "c, d = torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64)\n"
        "w = torch.ones(1, requires_grad=True)\ntorch.div(c, d, out=c)",
        "result type Float can't be cast",
        "",
    ),
    "a target of the right type": (
        "from operator import attrgetter\ny, w = torch.rand(1), torch.ones(1, requires_grad=True)\n"
        'text = "result type Float can\'t be cast to the desired output type Long"\nmax(w, y, key=attrgetter(text))',
        "the program failed with AttributeError",
        "",
    ),
    "a size in parentheses": (
        "n = 7\nw = torch.ones(1, requires_grad=True)\ntorch.zeros(((n + 1) / 2, 3))",
        "a size is a float: / always returns a float",
        "((n + 1) // 2, 3)",
    ),
    "a name that is also in the function's": (
        "t, b = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3)\ntorch.mm(t, b)",
        "t (2,3) @ b (4,3)",
        "torch.mm(t, b.T)",
    ),
    "a product after a layer": (
        "net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8))\nx = torch.randn(5, 4)\n"
        "a, w = torch.randn(5, 3), torch.randn(8, 8)\nh = net(x)\na @ w",
        "a (5,3) @ w (8,8): 3 columns do not match 8 rows",
        "",
    ),
    "an index after an embedding": (
        "e = nn.Embedding(10, 4)(torch.tensor([1, 2]))\ni = torch.tensor([5])\ne.index_select(0, i)",
        "index out of range",
        "",
    ),
    "a float matrix by whole numbers": (
        "x, m = torch.randn(2, 3, requires_grad=True), torch.ones(3, 2, dtype=torch.int64)\ntorch.mm(x, m)",
        "m (3,2) is int64",
        "torch.mm(x, m.float())",
    ),
    "a tensor for an optimizer": (
        "w = torch.ones(2, requires_grad=True)\ntorch.optim.SGD(w, lr=0.1)",
        "an optimizer expects a list of parameters, but gets a tensor",
        "",
    ),
    "targets that are no probabilities": (
        "p = torch.rand(3, requires_grad=True).sigmoid()\ny = torch.tensor([0.0, 1.0, 2.0])\n"
        "F.binary_cross_entropy(p, y)",
        "expects targets from 0 to 1",
        "",
    ),
    "a dimension of the loss": (
        "w = torch.randn(4, 3, requires_grad=True)\nh = w * 2\nloss = h.mean()\nloss.sum(1)",
        "loss () has only dimension 0",
        "",
    ),
    "a cat with its dimension": (
        "a, b = torch.randn(2, 3, requires_grad=True), torch.randn(2, 4)\ntorch.cat([a, b], 0)",
        "joined in dimension 0",
        "",
    ),
    "a convolution with its padding": (
        "c, x = nn.Conv2d(1, 1, 3, 1, 0), torch.randn(1, 1, 8, 8)\nx + c(x)",
        "8 against 6",
        "",
    ),
    "a size given by name": (
        "net = nn.Linear(out_features=14, in_features=4)\nnet(torch.randn(2, 5))",
        "expects 4 features, but gets 5",
        "nn.Linear(out_features=14, in_features=5)",
    ),
    "a weight of another name": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.kernel, self.shift = nn.Parameter(torch.ones(8, 4)), nn.Parameter(torch.ones(8))\n\n"
        "    def forward(self, x):\n        return F.linear(x, self.kernel, self.shift)\n\n\nNet()(torch.randn(2, 5))",
        "the shapes do not fit together",
        "",
    ),
    "a tensor without a name": (
        "x, y = torch.randn(2, 3, requires_grad=True), torch.randn(4, 5)\nd = {'first': x * 1}\nd['first'].sum(2)",
        "the tensor has only dimensions 0 to 1",
        "",
    ),
    "another class without an attribute": (
        "class Args:\n    hidden = 3\n\n\nnet = nn.Sequential()\nnet.hidden = nn.Linear(2, 2)\n"
        "net(torch.ones(1, 2))\nArgs().hiden",
        "'Args' object has no attribute 'hiden'",
        "",
    ),
    "a tuple that is no result": (
        "w = torch.ones(1, requires_grad=True)\n(1, 2).append(3)",
        "'tuple' object has no attribute",
        "",
    ),
    "a state of a part": (
        "a = nn.Sequential(nn.Linear(2, 2))\na(torch.ones(1, 2))\n"
        "m = nn.ModuleDict({'module': nn.Sequential(nn.Linear(2, 2))})\n"
        "m.load_state_dict(a.state_dict())",
        "the keys of the model begin with module.",
        "",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", NEAR)
def test_what_is_near_to_a_mismatch_is_not_blamed_on_the_wrong_tensor(name, mismatch, checks):
    pytest.importorskip("torch")
    program, title, edited = NEAR[name]
    found = mismatch(f"{HEAD}{program}\n", "torch")
    assert title in found.text, str(found)
    assert (found.edit is not None) == bool(edited), str(found.edit)
    assert found.edit is None or edited in found.edit.new


@pytest.mark.parametrize(
    "message",
    [
        f"mat1 and mat2 shapes cannot be multiplied ({'9' * 5000}x3 and 4x5)",
        "Expected 99999999999D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2]",
        "shape " * 20_000,
        f"size mismatch for {'a' * 200_000}",
    ],
    ids=["digits", "dimensions", "words", "a name"],
)
def test_a_hostile_message_is_only_text(message, mismatch):
    found = mismatch(f"{HEAD}x = torch.ones(2, requires_grad=True)\nraise RuntimeError({message!r})\n", "builtin")
    assert len(str(found)) < 2000


@pytest.mark.torch
def test_attention_of_another_width_is_a_mismatch_although_pytorch_asserts(tmp_path, capsys):
    pytest.importorskip("torch")
    script = tmp_path / "att.py"
    script.write_text(f"{HEAD}att = nn.MultiheadAttention(8, 2)\nx = torch.randn(5, 2, 10)\nout, _ = att(x, x, x)\n")
    assert run_command(["check", "-v", str(script)]) == 1
    out = capsys.readouterr().out
    assert "MultiheadAttention expects 8 features, but gets 10" in out
    assert "+att = nn.MultiheadAttention(10, 2)" in out

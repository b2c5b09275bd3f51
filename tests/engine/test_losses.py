"""Losses beside PyTorch: values, graphs, every reduction, what is ignored, and what is refused."""

import pytest
from twin import compare

import gviz.engine as torch

pytestmark = pytest.mark.torch

BEGIN = """
import numpy as np
import torch.nn.functional as F
def data(*shape, kind=torch.float64, seed=0):
    numbers = np.random.default_rng(seed + len(shape) + sum(shape)).standard_normal(shape)
    return torch.from_numpy(numbers).to(kind).requires_grad_()
def tried(f, *tensors):
    y = f(*tensors)
    see(y)
    y.backward((torch.arange(y.numel()).to(y.dtype) * .7 + .1).cos().reshape(y.shape))
    see(*[t for t in tensors if t.requires_grad])
x, t = data(3, 4), data(3, 4, seed=1)
p = t.detach().sigmoid().requires_grad_()
w = data(4, seed=2).detach().exp()
signs = t.detach().sign()
c = torch.tensor([1, 3, 0])
"""
CALLS = {
    "mse": "lambda x: F.mse_loss(x, t, reduction=how), x",
    "mse, target too": "lambda x, t: F.mse_loss(x, t, reduction=how), x, t",
    "mse, broadcast": "lambda x, t: F.mse_loss(x, t, reduction=how), x, data(4)",
    "mse, weighed": "lambda x: F.mse_loss(x, t, reduction=how, weight=t.detach().exp()), x",
    "l1": "lambda x, t: F.l1_loss(x, t, reduction=how), x, t",
    "smooth l1": "lambda x, t: F.smooth_l1_loss(x, t, reduction=how), x, t",
    "smooth l1, beta": "lambda x: F.smooth_l1_loss(x, t, reduction=how, beta=.4), x",
    "smooth l1, beta 0": "lambda x: F.smooth_l1_loss(x, t, reduction=how, beta=0.), x",
    "huber": "lambda x, t: F.huber_loss(x, t, reduction=how, delta=.6), x, t",
    "huber, at its borders": "lambda x: F.huber_loss(x, x.detach() + torch.tensor([0., 1, -1, 2]), reduction=how), x",
    "smooth l1, at its borders": "lambda x: F.smooth_l1_loss(x, x.detach() + torch.tensor([0., 1, -1, 2]), reduction=how), x",
    "soft margin": "lambda x: F.soft_margin_loss(x, signs, reduction=how), x",
    "bce": "lambda x, p: F.binary_cross_entropy(x.sigmoid(), p, reduction=how), x, p",
    "bce, weighed": "lambda x: F.binary_cross_entropy(x.sigmoid(), p.detach(), w, reduction=how), x",
    "bce, certain": "lambda q: F.binary_cross_entropy(q, torch.tensor([0., 1., 1., 0.]), reduction=how), torch.tensor([0., 1., 0., 1.]).requires_grad_()",
    "bce with logits": "lambda x, p: F.binary_cross_entropy_with_logits(x, p, reduction=how), x, p",
    "bce with logits, weighed": "lambda x, p: F.binary_cross_entropy_with_logits(x, p, w, reduction=how, pos_weight=w + 1), x, p",
    "bce with large logits": "lambda x: F.binary_cross_entropy_with_logits(x * 1000, p.detach(), reduction=how), x",
    "kl": "lambda x, p: F.kl_div(x, p, reduction=how), x, p",
    "kl of logarithms": "lambda x, t: F.kl_div(x, t, reduction=how, log_target=True), x, t",
    "poisson": "lambda x: F.poisson_nll_loss(x, p.detach() * 3, reduction=how, full=True), x",
    "poisson of rates": "lambda x: F.poisson_nll_loss(x.exp(), p.detach(), log_input=False, reduction=how), x",
    "gaussian": "lambda x, t, v: F.gaussian_nll_loss(x, t, v.exp(), reduction=how, full=True), x, t, data(3, 4, seed=5)",
    "gaussian, a variance a row": "lambda x: F.gaussian_nll_loss(x, t.detach(), torch.ones(3, 1).double() * 2, reduction=how), x",
    "nll": "lambda x: F.nll_loss(x, c, reduction=how), x",
    "nll, weighed": "lambda x: F.nll_loss(x, c, w, reduction=how), x",
    "nll, ignored": "lambda x: F.nll_loss(x, torch.tensor([1, -100, 0]), w, reduction=how), x",
    "nll, ignored by number": "lambda x: F.nll_loss(x, c, ignore_index=3, reduction=how), x",
    "nll, all ignored": "lambda x: F.nll_loss(x, torch.tensor([-100] * 3), reduction=how), x",
    "nll of one": "lambda x: F.nll_loss(x[0], torch.tensor(2), w, reduction=how), x",
    "nll of places": "lambda x: F.nll_loss(x, torch.tensor([[0, 1], [2, -100]]), reduction=how), data(2, 3, 2)",
    "nll of planes": "lambda x: F.nll_loss(x, torch.tensor([[[0, 1]], [[2, 2]]]), reduction=how), data(2, 3, 1, 2)",
    "cross entropy": "lambda x: F.cross_entropy(x, c, reduction=how), x",
    "cross entropy, weighed": "lambda x: F.cross_entropy(x, c, w, reduction=how), x",
    "cross entropy, smoothed": "lambda x: F.cross_entropy(x, c, reduction=how, label_smoothing=.2), x",
    "cross entropy, smoothed, weighed, ignored": "lambda x: F.cross_entropy(x, torch.tensor([1, -100, 0]), w, reduction=how, label_smoothing=.2), x",
    "cross entropy of one": "lambda x: F.cross_entropy(x[0], torch.tensor(2), reduction=how), x",
    "cross entropy of planes": "lambda x: F.cross_entropy(x, torch.tensor([[[0, 1]], [[2, 2]]]), reduction=how, label_smoothing=.1), data(2, 3, 1, 2)",
    "cross entropy of probabilities": "lambda x, p: F.cross_entropy(x, p, reduction=how), x, p",
    "cross entropy of probabilities, smoothed, weighed": "lambda x: F.cross_entropy(x, p.detach(), w, reduction=how, label_smoothing=.3), x",
    "multi margin": "lambda x: F.multi_margin_loss(x, c, reduction=how), x",
    "multi margin, squared": "lambda x: F.multi_margin_loss(x, c, 2, .7, w, reduction=how), x",
    "multi margin of one": "lambda x: F.multi_margin_loss(x[0], torch.tensor(2), reduction=how), x",
    "multilabel margin": "lambda x: F.multilabel_margin_loss(x, torch.tensor([[1, 2, -1, 0], [0, -1, 1, 1], [-1, 0, 0, 0]]), reduction=how), x",
    "multilabel margin of one": "lambda x: F.multilabel_margin_loss(x[0], torch.tensor([1, 2, -1, 0]), reduction=how), x",
    "multilabel soft margin": "lambda x: F.multilabel_soft_margin_loss(x, (t > 0).double(), w, reduction=how), x",
    "hinge embedding": "lambda x: F.hinge_embedding_loss(x, signs, .7, reduction=how), x",
    "margin ranking": "lambda x, t: F.margin_ranking_loss(x, t, signs, .3, reduction=how), x, t",
    "triplet": "lambda x, t, n: F.triplet_margin_loss(x, t, n, reduction=how), x, t, data(3, 4, seed=9)",
    "triplet, swapped": "lambda x, t, n: F.triplet_margin_loss(x, t, n, 2., 1, swap=True, reduction=how), x, t, data(3, 4, seed=9)",
    "triplet with distance": "lambda x, t, n: F.triplet_margin_with_distance_loss(x, t, n, reduction=how), x, t, data(3, 4, seed=9)",
    "cosine embedding": "lambda x, t: F.cosine_embedding_loss(x, t, torch.tensor([1, -1, 1]), .1, reduction=how), x, t",
}


@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_values_and_graphs(call, how):
    compare(f"{BEGIN}\nhow = '{how}'\ntried({call})", rtol=1e-8, atol=1e-10)


OTHERS = {
    "kl per batch": "tried(lambda x: F.kl_div(x, p.detach(), reduction='batchmean'), x)",
    "older arguments": "tried(lambda x: F.mse_loss(x, t, size_average=False), x)\ntried(lambda x: F.nll_loss(x, c, reduce=False), x)",
    "float32": "tried(lambda x: F.cross_entropy(x, c), data(3, 4, kind=torch.float32))",
    "distance": "tried(lambda x, t: F.pairwise_distance(x, t, 3., keepdim=True), x, t)",
    "distance to a row": "tried(lambda x, t: F.pairwise_distance(x, t), x, data(4))",
    "cosine": "tried(lambda x, t: F.cosine_similarity(x, t), x, t)",
    "cosine of columns": "tried(lambda x, t: torch.cosine_similarity(x, t, 0), x, data(4))",
    "cosine of nothing": "tried(lambda x: F.cosine_similarity(x * 0, t.detach()), x)",
}


@pytest.mark.parametrize("program", OTHERS.values(), ids=OTHERS)
def test_others(program):
    close = {"rtol": 1e-4, "atol": 1e-6} if "float32" in program else {"rtol": 1e-8, "atol": 1e-10}
    compare(f"{BEGIN}\n{program}", **close)


REFUSED = """F.nll_loss(x,torch.tensor([1,2,3]))
F.nll_loss(x,torch.tensor([1,7]))
F.nll_loss(x,torch.tensor([1,-1]))
F.nll_loss(x,l,z(3))
F.nll_loss(x,l.float())
F.nll_loss(x,l.int())
F.nll_loss(x,torch.tensor([[1,2]]))
F.nll_loss(torch.tensor(1.),torch.tensor(0))
F.nll_loss(x[0],torch.tensor([3]))
F.nll_loss(x.view(2,2,2),z(2,3).long())
F.nll_loss(x.view(1,2,2,2),z(1,2,3).long())
F.nll_loss(x,l,reduction='x')
F.nll_loss(z(0,4),z(0).long())
F.cross_entropy(x,l,label_smoothing=2.)
F.cross_entropy(x,torch.tensor([1,7]))
F.cross_entropy(x,z(2,3))
F.cross_entropy(x,l.float())
F.cross_entropy(x,z(2,4).long())
F.cross_entropy(z(0,4),z(0).long())
F.cross_entropy(z(0,4),z(0,4))
F.cross_entropy(x.long(),l)
F.mse_loss(x,z(3))
F.mse_loss(x.long(),x.long())
F.mse_loss(x,x,reduction='y')
F.l1_loss(x,z(3))
F.smooth_l1_loss(x,x,beta=-1.)
F.huber_loss(x,x,delta=-1.)
F.binary_cross_entropy(x,x)
F.binary_cross_entropy(x.sigmoid(),z(2,3))
F.binary_cross_entropy_with_logits(x,z(2,3))
F.kl_div(x,z(2,3))
F.gaussian_nll_loss(x,x,z(3))
F.gaussian_nll_loss(x,x,-torch.ones(2,4))
F.gaussian_nll_loss(x,x,torch.ones(2,4),reduction='x')
F.hinge_embedding_loss(x,z(2,3))
F.margin_ranking_loss(x,x,z(3))
F.triplet_margin_loss(x,x,x[0])
F.triplet_margin_loss(x,x,x,margin=-1)
F.cosine_embedding_loss(x,x,z(2,4))
F.soft_margin_loss(x,z(3))
F.multi_margin_loss(x,l,p=3)
F.multi_margin_loss(x,torch.tensor([1,9]))
F.multi_margin_loss(x,l,weight=z(3))
F.multilabel_margin_loss(x,l)
F.multilabel_margin_loss(x,torch.full((2,4),9))
F.poisson_nll_loss(x,x,reduction='x')
F.poisson_nll_loss(x,z(3),reduction='elementwise_mean')
F.triplet_margin_with_distance_loss(x,x,z(3),margin=-1,reduction='elementwise_mean')
F.multilabel_soft_margin_loss(x,x,reduction='x')
F.multilabel_soft_margin_loss(x,x,reduction=None)
F.multilabel_soft_margin_loss(x,x,weight=torch.ones(9),reduction='x')""".splitlines()


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call):
    begin = (
        "import torch.nn.functional as F\nx, l, z = torch.arange(8.).view(2, 4), torch.tensor([1, 2]), torch.zeros\n"
    )
    compare(f"{begin}attempt(lambda: {call})")


def test_a_target_of_another_size_is_warned_of():
    with pytest.warns(UserWarning, match=r"Using a target size \(torch.Size\(\[3\]\)\) that is different"):
        torch.nn.functional.mse_loss(torch.ones(2, 3), torch.ones(3))

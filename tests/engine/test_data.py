"""Datasets, samplers, batches, against PyTorch: everything but which random numbers are drawn."""

import pytest
from twin import compare

import gviz.engine as torch
from gviz.engine.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler, random_split

SETUP = """
import torch.utils.data
import numpy as np
D = torch.utils.data
from collections import namedtuple, OrderedDict
x = torch.arange(10.).view(5, 2); y = torch.arange(5)
class Squares(D.Dataset):
    def __len__(self): return 7
    def __getitem__(self, i): return i * i
class Stream(D.IterableDataset):
    def __iter__(self): return iter(range(5))
    def __len__(self): return 5
"""

PROGRAMS = {
    "datasets": """
t = D.TensorDataset(x, y); see(len(t), t[1], t[-1], t[1:3]); attempt(lambda: D.TensorDataset(x, torch.ones(4))); attempt(lambda: t[5])
c = Squares() + Squares(); see(len(c), c[3], c[8], c[-1], c.cumulative_sizes, type(c).__name__); attempt(lambda: c[-15]); attempt(lambda: D.ConcatDataset([])); attempt(lambda: D.ConcatDataset([Stream()]))
s = D.Subset(t, [3, 0]); see(len(s), s[0], s[[0, 1]], s.__getitems__([1])); ch = Stream() + Stream(); see(list(ch), len(ch), type(ch).__name__); attempt(lambda: list(D.ChainDataset([t])))
attempt(lambda: D.Dataset()[0]); k = D.StackDataset(a=Squares(), b=Squares()); see(k[2], len(k), D.StackDataset(Squares(), Squares())[2]); attempt(lambda: D.StackDataset()); attempt(lambda: D.StackDataset(t, Squares())); attempt(lambda: D.StackDataset(t, a=t))
""",
    "splits": """
parts = D.random_split(Squares(), [3, 4]); see([len(p) for p in parts], sorted(i for p in parts for i in p.indices), type(parts[0]).__name__)
see([len(p) for p in D.random_split(Squares(), [0.5, 0.3, 0.2])]); attempt(lambda: D.random_split(Squares(), [1, 2])); attempt(lambda: D.random_split(Squares(), [1.5, -0.5])); see([len(p) for p in D.random_split(Squares(), [1., 0.])])
""",
    "samplers": """
see(list(D.SequentialSampler(x)), len(D.SequentialSampler(x)), sorted(D.RandomSampler(x)), len(D.RandomSampler(x, True, 9)), len(list(D.RandomSampler(x, True, 40))), len(list(D.RandomSampler(x, num_samples=12))), sorted(D.SubsetRandomSampler([4, 2])))
b = D.BatchSampler(range(7), 3, False); see(list(b)); b = D.BatchSampler(D.SequentialSampler(range(7)), 3, True); see(list(b), len(b), len(D.BatchSampler(D.SequentialSampler(range(7)), 3, False)))
w = D.WeightedRandomSampler([0., 1., 0.], 4); see(list(w), len(w), sorted(D.WeightedRandomSampler([1., 2.], 2, False)))
for call in ("D.RandomSampler(x, 1)", "D.RandomSampler([])", "D.RandomSampler(x, num_samples=0)", "D.BatchSampler(x, 0, False)", "D.BatchSampler(x, 2, 1)", "D.WeightedRandomSampler([1.], 0)", "D.WeightedRandomSampler([1.], 1, 2)", "D.WeightedRandomSampler([[1.]], 1)", "iter(D.Sampler())"): attempt(lambda: eval(call))
""",
    "collation": """
P = namedtuple("P", "a b")
for batch in ([x[0], x[1]], [1, 2], [1.5, 2.], [True, False], ["a", "b"], [b"a"], [(1, x[0]), (2, x[1])], [[1, 2.], [3, 4.]], [{"a": 1, "b": x[0]}, {"a": 2, "b": x[1]}], [P(1, 2.), P(3, 4.)], [np.ones(2), np.zeros(2)], [np.float32(1), np.float32(2)], [np.int64(1)], [OrderedDict(a=1)], [((1, 2), [3]), ((4, 5), [6])]):
    r = D.default_collate(batch); see(type(r).__name__, r)
for batch in ([x[0], y], [(1, 2), (1,)], [None], [np.array(["a"])], [object]): attempt(lambda: type(D.default_collate(batch)).__name__)
for data in (np.ones(2), np.float32(1), {"a": np.ones(1)}, (1, np.ones(1)), [np.ones(1), "a"], P(1, np.ones(1)), "a", 3, x[0]): r = D.default_convert(data); see(type(r).__name__, r)
""",
    "batches": """
t = D.TensorDataset(x, y)
for options in (dict(), dict(batch_size=2), dict(batch_size=2, drop_last=True), dict(batch_size=None), dict(batch_sampler=[[0, 1], [3]]), dict(sampler=[4, 0, 1], batch_size=2), dict(batch_size=2, collate_fn=len)):
    l = D.DataLoader(t, **options); see(len(l), list(l)); see(l.batch_size, l.drop_last, type(l.sampler).__name__, type(l.batch_sampler).__name__)
for options in (dict(batch_size=2), dict(batch_size=2, drop_last=True), dict(batch_size=None)): l = D.DataLoader(Stream(), **options); see(len(l), list(l))
l = D.DataLoader(Squares(), batch_size=3, shuffle=True); seen = [b.tolist() for b in l]; see(sorted(sum(seen, [])), [len(b) for b in seen], type(l.sampler).__name__); a = iter(l); see(len(next(a)))
see([b.tolist() for b in D.DataLoader(D.Subset(Squares(), [1, 2, 3]), 2)]); see(list(D.DataLoader([{"a": 1, "b": 2.}, {"a": 3, "b": 4.}], 2)), list(D.DataLoader(["a", "b"])), list(D.DataLoader(range(3), 2)))
""",
    "a stream longer than it says": """
import warnings
class Longer(Stream):
    def __len__(self): return 2
    def __repr__(self): return "Longer"
for asks in (False, True):
    l = D.DataLoader(Longer(), batch_size=1); asks and len(l)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always"); see(len(list(l)))
    see([str(c.message) for c in caught])
""",
    "refusals": """
t = D.TensorDataset(x, y); l = D.DataLoader(t)
for call in ("D.DataLoader(t, num_workers=-1)", "D.DataLoader(t, timeout=-1)", "D.DataLoader(t, prefetch_factor=2)", "D.DataLoader(t, persistent_workers=True)", "D.DataLoader(Stream(), shuffle=True)", "D.DataLoader(Stream(), sampler=[1])", "D.DataLoader(Stream(), batch_sampler=[[1]])",
             "D.DataLoader(t, sampler=[1], shuffle=True)", "D.DataLoader(t, batch_sampler=[[1]], batch_size=2)", "D.DataLoader(t, batch_size=None, drop_last=True)", "D.DataLoader(t, batch_size=0)", "setattr(l, 'batch_size', 3)", "D.DataLoader([], shuffle=True)", "D.DataLoader(Squares(), 2, collate_fn=lambda b: 1 / 0).__iter__().__next__()"): attempt(lambda: eval(call))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])


def test_workers_are_this_process_and_that_is_said_once():
    dataset = TensorDataset(torch.arange(4))
    with pytest.warns(UserWarning, match="num_workers=2 is taken as num_workers=0") as caught:
        loader = DataLoader(dataset, batch_size=2, num_workers=2)
    batches = [batch[0].tolist() for batch in loader]
    assert batches == [[0, 1], [2, 3]]
    assert [(len(caught), warning.filename) for warning in caught] == [(1, __file__)]


def test_generators_decide_the_order():
    dataset = TensorDataset(torch.arange(20))

    def order(seed):
        loader = DataLoader(dataset, batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(seed))
        return [batch[0].tolist() for batch in loader]

    assert order(3) == order(3) != order(4)
    splits = [random_split(dataset, [5, 15], torch.Generator().manual_seed(s))[0].indices for s in (3, 3, 4)]
    assert splits[0] == splits[1] != splits[2]
    sampler = RandomSampler(dataset)
    torch.manual_seed(5)
    first, second = list(sampler), list(sampler)
    torch.manual_seed(5)
    assert list(sampler) == first != second


def test_weights_decide_how_often():
    torch.manual_seed(0)
    drawn = list(WeightedRandomSampler([1, 3], 4000))
    assert abs(drawn.count(1) - 3000) < 150

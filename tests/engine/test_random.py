"""Random numbers: seeds, states, distributions; and, against PyTorch, everything about them but the numbers."""

import copy

import numpy as np
import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch
from gviz import events as e

MANY = 20000
LEAF = "t = (torch.arange(6.).view(2, 3) / 8).requires_grad_() * 1; v = torch.ones(2, 3); i = torch.zeros(2, dtype=torch.int64)\n"

ABOUT = """
def about(call):
    "Of random numbers: all but the numbers."
    def described():
        r = call()
        return str(r.dtype), r.shape, type(r.grad_fn).__name__, r._version, r.requires_grad, r.is_leaf
    attempt(described)
"""

FILLS = [
    "uniform_()", "uniform_(1, 2)", "uniform_(2, 1)", "normal_()", "normal_(0, -1)", "random_()", "random_(5)",
    "random_(2, 5)", "random_(5, 2)", "random_(0)", "bernoulli_()", "bernoulli_(0.3)", "bernoulli_(v)",
    "bernoulli_(1.5)", "exponential_()", "exponential_(0)", "log_normal_()", "log_normal_(0, 0)", "cauchy_()",
    "cauchy_(0, -1)", "geometric_(0.5)", "geometric_(1)", "uniform_(**{'from': 3., 'to': 4.})",
    "random_(**{'from': 3, 'to': 4})", "bernoulli()", "multinomial(2)", "multinomial(4)", "multinomial(0)",
    "multinomial(4, True)",
]  # fmt: skip

CALLS = [
    "torch.normal(t, t + 1)", "torch.normal(t, 1.)", "torch.normal(0., t + 1)", "torch.normal(0., 1., (2,))",
    "torch.normal(t, t - 5)", "torch.normal(t, -1.)", "torch.normal(mean=v, std=2.)", "torch.normal(v, torch.ones(4))",
    "torch.bernoulli(t)", "torch.bernoulli(i)", "torch.poisson(t)", "torch.poisson(t - 5)", "torch.multinomial(t, 2)",
    "torch.multinomial(-v, 2)", "torch.multinomial(v * 0, 2)", "torch.multinomial(v[0, 0], 2)",
    "torch.randint(3, (2,))", "torch.randint(5, 3, (2,))", "torch.randint(0, (2,))", "torch.randint(1.5, (2,))",
    "torch.randint(0, 5, (2,), dtype=torch.float32)", "torch.randint(0, 300, (2,), dtype=torch.uint8)",
    "torch.randint(0, 2, size=(3,))", "torch.randint(high=2, size=(3,))", "torch.randint(2, size=(3,))",
    "torch.randint(low=0, high=4, size=(2,))", "torch.randint(-3, 0, (1,))", "torch.randperm(4)", "torch.randperm(-1)",
    "torch.randperm(4, dtype=torch.float32)", "torch.rand(2, generator=torch.Generator())",
    "torch.rand(2, dtype=torch.int64)", "torch.randn(2, dtype=torch.int64)", "torch.rand(-1)",
    "torch.randn(2, 3, requires_grad=True)", "torch.rand(size=(2,))", "torch.rand([2, 3])", "torch.rand(())",
    "torch.rand_like(t)", "torch.randn_like(v, dtype=torch.float64)", "torch.randint_like(t, 5)",
    "torch.rand_like(i)", "torch.randint_like(t, 2, 5)", "i.uniform_()", "i.normal_()", "i.exponential_()",
    "i.random_()", "i.bernoulli_(0.5)", "i.geometric_(0.5)", "torch.zeros(2, dtype=torch.bool).random_()",
    "torch.zeros(2, dtype=torch.uint8).random_(0, 300)", "v.requires_grad_().uniform_()",
    "torch.zeros(1).expand(2).uniform_()", "torch.rand(2, device='cpu', layout=torch.strided, pin_memory=False)",
    "torch.randn(2, out=torch.empty(2))",
    "torch.randperm(3, out=torch.empty(3, dtype=torch.int64))", "torch.randint(3, (2,), dtype=torch.float16)",
]  # fmt: skip

PROGRAMS = {
    "gradients": """
t = torch.full((2, 3), 0.5, requires_grad=True); u = t * 2
u.normal_(); (u * 3).sum().backward(); numbers(t.grad)
torch.bernoulli(t).sum().backward(); numbers(t.grad)
m = torch.ones(3, requires_grad=True); torch.normal(t, m).sum().backward(); numbers(t.grad, m.grad)
""",
    "generators": """
g = torch.Generator(); see(g.initial_seed(), g.manual_seed(5) is g, g.initial_seed(), str(g.device))
attempt(lambda: torch.manual_seed("a")); attempt(lambda: torch.manual_seed(2**64)); attempt(lambda: torch.Generator("cpu").initial_seed())
see(torch.manual_seed(-1).initial_seed(), torch.initial_seed(), torch.manual_seed(1.5) is torch.default_generator, torch.initial_seed())
see(type(torch.seed()).__name__, str(torch.get_rng_state().dtype)); attempt(lambda: torch.set_rng_state(torch.zeros(3)))
torch.manual_seed(3); a = torch.rand(3); torch.random.manual_seed(3); see(torch.equal(a, torch.rand(3)))
s = torch.get_rng_state(); a = torch.randn(3); torch.set_rng_state(s); see(torch.equal(a, torch.randn(3)))
with torch.random.fork_rng(): a = torch.rand(1)
see(torch.equal(a, torch.rand(1)))
g.manual_seed(4); a = torch.rand(2, generator=g); b = torch.rand(2, generator=g); g.manual_seed(4); see(torch.equal(a, torch.rand(2, generator=g)))
h = g.clone_state(); see(torch.equal(torch.rand(2, generator=h), b), torch.equal(torch.rand(2, generator=g), b))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("call", [f"t.{fill}" for fill in FILLS] + CALLS)
def test_all_but_the_numbers_is_pytorchs(call):
    compare(ABOUT + LEAF + f"about(lambda: {call})")


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])


@pytest.mark.parametrize(
    ("drawn", "mean", "std"),
    [
        (lambda: torch.rand(MANY), 0.5, 12**-0.5),
        (lambda: torch.randn(MANY), 0, 1),
        (lambda: torch.zeros(MANY).normal_(3, 2), 3, 2),
        (lambda: torch.zeros(MANY).uniform_(-1, 3), 1, 4 / 12**0.5),
        (lambda: torch.zeros(MANY).exponential_(4), 0.25, 0.25),
        (lambda: torch.zeros(MANY).geometric_(0.5), 2, 2**0.5),
        (lambda: torch.zeros(MANY).bernoulli_(0.2), 0.2, 0.4),
        (lambda: torch.bernoulli(torch.full((MANY,), 0.2)), 0.2, 0.4),
        (lambda: torch.poisson(torch.full((MANY,), 4.0)), 4, 2),
        (lambda: torch.zeros(MANY).log_normal_(0, 0.5).log(), 0, 0.5),
        (lambda: torch.normal(torch.full((MANY,), 3.0), 2.0), 3, 2),
        (lambda: torch.randint(2, 5, (MANY,)).float(), 3, (2 / 3) ** 0.5),
        (lambda: torch.zeros(MANY).random_(2, 5), 3, (2 / 3) ** 0.5),
        (lambda: torch.randperm(MANY).float() / MANY, 0.5, 12**-0.5),
    ],
)
def test_distributions(drawn, mean, std):
    torch.manual_seed(0)
    values = drawn().numpy()
    assert abs(values.mean() - mean) < 4 * max(std, 0.1) / MANY**0.5
    assert abs(values.std() - std) < 0.05 * std


def test_choices_follow_their_weights():
    torch.manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 3.0])
    with_replacement = np.bincount(weights.multinomial(MANY, replacement=True).numpy(), minlength=3) / MANY
    np.testing.assert_allclose(with_replacement, [0, 0.25, 0.75], atol=0.02)
    first = torch.multinomial(weights.view(1, 3).expand(MANY, 3), 2)[:, 0].numpy()
    np.testing.assert_allclose(np.bincount(first, minlength=3) / MANY, [0, 0.25, 0.75], atol=0.02)
    assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4]


def test_uniform_numbers_never_reach_their_upper_end(monkeypatch):
    class Highest:
        def uniform(self, low, high, shape):
            return np.full(shape, np.nextafter(high, low))

    monkeypatch.setattr(torch.random.default_generator, "stream", Highest())
    assert torch.rand(2).max().item() < 1
    assert torch.zeros(2).uniform_(2, 3).max().item() < 3


def test_every_process_starts_from_the_same_seed_and_generators_copy():
    generator = torch.Generator().manual_seed(7)
    torch.rand(3, generator=generator)
    twin = copy.deepcopy(generator)
    assert torch.rand(2, generator=twin).tolist() == torch.rand(2, generator=generator).tolist()
    assert twin.initial_seed() == 7
    with pytest.raises(RuntimeError, match="the built-in engine runs on the CPU"):
        torch.Generator("cuda")
    with pytest.raises(TypeError, match="unexpected keyword argument 'low'"):
        torch.zeros(1).uniform_(low=1)


def test_a_recording_holds_what_was_drawn():
    x = torch.zeros(2)

    def program():
        x.uniform_()
        return x

    events = events_of(program)
    (written,) = [event for event in events if isinstance(event, e.StorageWritten)]
    constants = [event for event in events if isinstance(event, e.NodeCreated) and event.kind == "constant"]
    assert written.value.array().tolist() == x.tolist()
    assert x.tolist() in [c.outputs[0].value.array().tolist() for c in constants]

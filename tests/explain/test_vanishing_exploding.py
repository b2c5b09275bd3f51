"""Gradients that die out or blow up on their way: found from a few layers on, with the factors, and nothing else."""

import pytest
from explain.programs import HERE, line_of, recorded
from recording import timeline_of

import gviz.engine as torch
from gviz.explain.check import check
from gviz.explain.finding import lines, whole
from gviz.explain.typed_question import answers
from gviz.explain.why import why
from gviz.values.value_text import norm

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def deep(function, layers, *, steps=1, skip=False, scale=1.0):
    """A net of so many layers and a head, after so many steps of training."""

    def program():
        torch.manual_seed(0)
        net = [torch.nn.Linear(8, 8) for _ in range(layers)]
        head = torch.nn.Linear(8, 1)
        with torch.no_grad():
            for layer in net:
                layer.weight.mul_(scale)
        parameters = [one for layer in (*net, head) for one in layer.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for _ in range(steps):
            x = torch.randn(16, 8)
            for layer in net:
                x = function(layer(x)) + x if skip else function(layer(x))
            optimizer.zero_grad()
            head(x).pow(2).mean().backward()
            optimizer.step()
        return net, head

    return timeline_of(program)


def found(timeline):
    return {one.finding.kind: one for one in check(timeline)}


@on_both_engines
def test_six_layers_are_enough_to_name_it(engine):
    (one,) = check(recorded("loops", "six_sigmoids", engine))
    assert (one.level, one.finding.kind) == ("note", "vanishing")
    _, first, factor, *_ = one.finding.parts
    at = f"six_sigmoids.py:{line_of(HERE / 'loops' / 'six_sigmoids.py')}"
    assert first.text.endswith(at)  # of the forward the last sigmoid, of the way back the first
    assert one.finding.where == at
    assert "by sigmoid, 6 times, first at six_sigmoids.py" in factor.text
    assert "relu instead of sigmoid" in one.finding.fix
    assert len(list(lines(one.finding))) <= 6


@on_both_engines
def test_the_factors_are_what_was_recorded(engine):
    timeline = recorded("loops", "six_sigmoids", engine)
    (one,) = check(timeline)
    before, after = one.finding.numbers
    for number in (before, after):
        event = timeline.event(number.event)
        assert number.value == pytest.approx(norm(event.part))
    factors = [number for fact in whole(one.finding) for number in fact.numbers if number.name == "factor"]
    assert all(number.event for number in factors)
    assert factors[0].value < 4.0**-6  # of six sigmoids, none of which lets more through than a quarter


@on_both_engines
def test_a_question_about_the_gradient_names_the_cause_and_then_the_sum(engine):
    timeline = recorded("loops", "six_sigmoids", engine)
    (answer,) = answers(timeline, "layers.0.weight.grad")
    assert answer.kind == "vanishing"
    assert [part.kind for part in answer.parts if part.kind in ("first", "contribution")] == ["first", "contribution"]
    (near,) = answers(timeline, "head.weight.grad")
    assert near.kind == "gradient"


@pytest.mark.parametrize(
    ("function", "layers", "options"),
    [
        (torch.relu, 6, {}),
        (torch.tanh, 6, {}),
        (torch.sigmoid, 3, {}),
        (torch.sigmoid, 6, {"skip": True}),
        (torch.sigmoid, 6, {"scale": 20.0}),
        (torch.tanh, 6, {"scale": 0.3}),
    ],
    ids=["relu", "tanh", "three", "residual", "large weights", "not the functions"],
)
def test_a_gradient_that_arrives_is_no_mistake(function, layers, options):
    assert "vanishing" not in found(deep(function, layers, **options))


def test_a_gradient_of_which_nothing_is_left_is_more_than_suspected():
    timeline = deep(torch.sigmoid, 12, steps=2)
    assert found(timeline)["vanishing"].level == "warning"


def test_a_parameter_that_stays_is_not_blamed_on_the_rate_where_its_gradient_died():
    one = found(deep(torch.sigmoid, 14, steps=2))["unchanged"].finding
    assert "relu instead of sigmoid" in one.fix
    assert [part.kind for part in one.parts] == ["vanishing"]
    assert "rate" not in "\n".join(text for _, text, _ in lines(one))


def test_an_answer_about_a_way_of_thousands_looks_at_its_end():
    def program():
        w = torch.tensor(1.0, requires_grad=True)
        y = w
        for _ in range(3000):
            y = y * 1.0
        (y * 1e-9 * 1.0).backward()
        return w

    timeline = timeline_of(program)
    assert why(timeline, timeline.at(len(timeline)), 1, "grad").kind == "gradient"
    assert found(timeline)["vanishing"].level == "warning"


def idle_bias(layers):
    """A bias that a normalization takes out again, beside a net of so many sigmoids."""

    def program():
        torch.manual_seed(0)
        first, norm = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)
        net = [torch.nn.Linear(8, 8) for _ in range(layers)]
        for module in (first, norm, *net):
            module.double()
        x = norm(first(torch.randn(16, 4, dtype=torch.float64)))
        for layer in net:
            x = torch.sigmoid(layer(x))
        x.pow(2).mean().backward()
        return first, norm, net

    return timeline_of(program)


def test_a_bias_that_a_normalization_makes_idle_has_not_lost_its_gradient_on_the_way():
    timeline = idle_bias(1)
    assert "vanishing" not in found(timeline)
    assert why(timeline, timeline.at(len(timeline)), 2, "grad").kind == "gradient"


def test_an_idle_bias_does_not_hide_a_gradient_that_dies_out():
    assert "vanishing" in found(idle_bias(6))


def test_a_net_whose_output_dies_out_has_not_learned():
    def program():
        ws = [torch.full((1,), 1e-5, requires_grad=True) for _ in range(4)]
        x = torch.ones(1)
        for w in ws:
            x = x * w
        x.sum().backward()
        return ws

    assert "vanishing" in found(timeline_of(program))


def test_the_gradient_of_what_is_learned_has_not_vanished():
    def program():
        w = torch.zeros(1, 2, requires_grad=True)
        scores = w * 1.0 + torch.tensor([[40.0, 0.0]])
        torch.nn.functional.cross_entropy(scores, torch.tensor([0])).backward()
        return w

    assert "vanishing" not in found(timeline_of(program))


@pytest.mark.parametrize(("before", "kinds"), [(5e-3, set()), (1e-2, set()), (5e-4, {"vanishing"})])
def test_a_gradient_that_only_loses_what_it_gained_has_not_vanished(before, kinds):
    def program():
        w = torch.ones(2, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        h = w
        for _ in range(4):
            h = h * before
        ((h * 1e9).sum() * 0.5).backward()
        optimizer.step()
        return w

    assert {"vanishing"} & set(found(timeline_of(program))) == kinds


UNITS = """import torch
R = torch.tensor(RESISTANCE, requires_grad=True)
C = torch.tensor(CAPACITANCE, requires_grad=True)
t = torch.linspace(0, 3, 50) * (RESISTANCE * CAPACITANCE)
for i in range(3):
    R.grad = C.grad = None
    v = 5 * (1 - torch.exp(-t / (R * C)))
    ((v - 2.0) ** 2).mean().backward()
"""


@on_both_engines
@pytest.mark.parametrize(("resistance", "capacitance"), [("8.0e3", "3.0e-11"), ("2.0e-11", "5.0e3")])
def test_the_gradient_of_a_leaf_in_a_unit_of_its_own_is_large_for_its_small_numbers(
    resistance, capacitance, engine, checks
):
    text = UNITS.replace("RESISTANCE", resistance).replace("CAPACITANCE", capacitance)
    assert {one.finding.kind for one in checks.of_text(text, engine).found}.isdisjoint({"exploding", "vanishing"})


@on_both_engines
def test_a_gradient_that_grows_with_the_numbers_of_a_leaf_explodes(engine, checks):
    text = "import torch\nw = torch.tensor([30.0, 40.0], requires_grad=True)\nh = w\n"
    text += "for i in range(7):\n    h = h * w\nh.sum().backward()\n"
    assert "exploding" in {one.finding.kind for one in checks.of_text(text, engine).found}


MASS = """import torch
log_mass = torch.tensor(93.0, dtype=torch.float64, requires_grad=True)
r = torch.linspace(1e19, 5e20, 50, dtype=torch.float64)
v = torch.sqrt(6.674e-11 * 2e41 / r)
for i in range(3):
    log_mass.grad = None
    (torch.sqrt(6.674e-11 * log_mass.exp() / r) - v).pow(2).mean().backward()
"""
OWN_SCALES = """import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(32, 3)
trunk, one, two = nn.Linear(3, 8), nn.Linear(8, 1), nn.Linear(8, 1)
for i in range(3):
    h = torch.tanh(trunk(x))
    first = nn.functional.mse_loss(one(h), x[:, :1])
    second = nn.functional.mse_loss(1e4 * two(h), 1e4 * x[:, 1:2])
    (first / first.detach() + second / second.detach()).backward()
"""
FITTED = """import torch
t = torch.linspace(0.01, 1.0, 60, dtype=torch.float64)
noise = torch.randn(60, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
way = 6 * t * (3 + 0.1 * noise)
rate = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
for i in range(40):
    (6 * rate * t - way).pow(2).mean().backward()
    with torch.no_grad():
        rate -= 0.04 * rate.grad
    rate.grad = None
"""


@on_both_engines
@pytest.mark.parametrize("text", [MASS, OWN_SCALES, FITTED])
def test_units_scales_and_a_fit_that_fits_are_no_vanishing_and_no_explosion(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    assert {one.finding.kind for one in outcome.found}.isdisjoint({"exploding", "vanishing"})


@on_both_engines
def test_layers_that_are_too_large_explode_with_their_values(engine, checks):
    text = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
    text += "net = nn.Sequential(*[nn.Linear(16, 16) for _ in range(9)], nn.Linear(16, 1))\n"
    text += "with torch.no_grad():\n    for p in net.parameters():\n        p.mul_(30)\n"
    text += "net(torch.randn(8, 16)).mean().backward()\n"
    assert "exploding" in {one.finding.kind for one in checks.of_text(text, engine).found}


SMALL_UNIT = """import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(40, 3)
y = 3e-10 * torch.tanh(x @ torch.tensor([[1.0], [2.0], [-1.0]]))
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
nn.init.zeros_(net[0].bias)
opt = OPTIMIZER
for i in range(12):
    opt.zero_grad()
    nn.functional.mse_loss(3e-10 * net(x), y).backward()
    opt.step()
"""
LIKELIHOOD = """import torch
x = 1.5 + torch.linspace(-2, 2, 60, dtype=torch.float64)
mu = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
for i in range(8):
    like = torch.exp(-0.5 * (x - mu) ** 2).prod() / (2 * torch.pi) ** 30
    like.backward()
    with torch.no_grad():
        mu += RATE * mu.grad
    mu.grad = None
"""


@on_both_engines
@pytest.mark.parametrize(
    "text",
    [
        SMALL_UNIT.replace("OPTIMIZER", "torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-30)"),
        SMALL_UNIT.replace("OPTIMIZER", "torch.optim.SGD(net.parameters(), lr=1e18)"),
        LIKELIHOOD.replace("RATE", "0.3 / 60 / like.item()"),
    ],
)
def test_a_gradient_that_is_small_for_its_unit_has_not_vanished_if_it_trains(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    assert {one.finding.kind for one in outcome.found}.isdisjoint({"exploding", "vanishing", "unchanged"})


@on_both_engines
@pytest.mark.parametrize(
    "text",
    [
        SMALL_UNIT.replace("OPTIMIZER", "torch.optim.Adam(net.parameters(), lr=1e-2)"),
        SMALL_UNIT.replace("OPTIMIZER", "torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.1)"),
        SMALL_UNIT.replace("OPTIMIZER", "torch.optim.SGD(net.parameters(), lr=1e-2)"),
        LIKELIHOOD.replace("RATE", "0.3"),
    ],
)
def test_a_gradient_that_is_small_for_its_unit_has_vanished_if_it_does_not_train(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    assert {one.level for one in outcome.found if one.finding.kind == "vanishing"} == {"warning"}


@on_both_engines
@pytest.mark.parametrize("step", ["h = h * 3", "h = h * 2 * 2"])
def test_a_constant_factor_that_a_loop_repeats_explodes(step, engine, checks):
    text = "import torch\nw = torch.tensor([1e-3, 2e-3], requires_grad=True)\nh = w\nfor i in range(25):\n"
    text += f"    {step}\nh.sum().backward()\n"
    assert "exploding" in {one.finding.kind for one in checks.of_text(text, engine).found}

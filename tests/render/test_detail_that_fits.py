"""Levels of a picture: calls of the program, modules, repeats; and that a picture without options fits a page."""

import re
import shlex
from dataclasses import replace

import pytest
from recording import timeline_of

import gviz
import gviz.engine as builtin
from benchmarks.picture_models import MODELS
from gviz.api.export import export
from gviz.errors import GvizError
from gviz.render import option_words
from gviz.render.boxes.collapse_choice import GraphView, most_informative
from gviz.render.boxes.folding import Filter
from gviz.render.boxes.function_calls import source_calls
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.repeats import runs
from gviz.render.detail_that_fits import PAGE
from gviz.render.graphviz.dot import dot
from gviz.render.legend import legend, painted
from gviz.render.picture_request import ExportOptions, Part, drawing, moment_scene
from gviz.render.styles import STYLES
from gviz.trace import load
from gviz.values.number_text import number
from gviz.values.value_text import NO_VALUE, norm

pytestmark = pytest.mark.torch


def engine(name):
    return pytest.importorskip(name)


def recorded(folder, program, torch):
    torch.manual_seed(0)
    with gviz.record(folder / "t.gviz"):
        program(torch)
    return load(folder / "t.gviz")


def drawn(timeline, **part):
    notes = []
    options = ExportOptions(part=Part(**part), note=notes.append)
    words = drawing(timeline, len(timeline), options, fits=True)
    return moment_scene(timeline, len(timeline), words), notes


def titles(scene):
    return [re.sub(r" #\d+$", "", box.title) for box in scene.boxes]


CALLS = {
    "linear": lambda torch, F, x: F.linear(x, torch.ones(3, 8, requires_grad=True), torch.ones(3)),
    "cross_entropy": lambda torch, F, x: F.cross_entropy(x * 2, torch.tensor([1, 2])),
    "layer_norm": lambda torch, F, x: F.layer_norm(x * 2, (8,)),
    "scaled_dot_product_attention": lambda torch, F, x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "matmul": lambda torch, F, x: x[None] @ torch.ones(1, 8, 2),
    "conv2d": lambda torch, F, x: F.conv2d(x.reshape(1, 1, 2, 8), torch.ones(1, 1, 2, 2)),
    "max_pool2d": lambda torch, F, x: F.max_pool2d(x.reshape(1, 1, 2, 8), 2),
    "batch_norm": lambda torch, F, x: F.batch_norm(x * 2, None, None, training=True),
    "cat": lambda torch, F, x: torch.cat([x, x], 1),
    "einsum": lambda torch, F, x: torch.einsum("ij,kj->ik", x, x),
    "softmax": lambda torch, F, x: F.softmax(x, -1),
    "gelu": lambda torch, F, x: F.gelu(x),
}


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
@pytest.mark.parametrize("call", CALLS)
def test_all_nodes_of_one_call_are_one_box_with_the_public_name(tmp_path, name, call):
    torch = engine(name)

    def program(torch):
        x = torch.randn(2, 8, requires_grad=True)
        out = CALLS[call](torch, torch.nn.functional, x)
        out.sum().backward()

    timeline = recorded(tmp_path, program, torch)
    scene, _ = drawn(timeline, level="calls")
    found = [title.rpartition(" = ")[2].removesuffix(" (train)") for title in titles(scene)]
    assert found.count(call) == 1
    hidden = ("nll_loss", "log_softmax", "addmm", "native_", "_unsafe_view", "convolution", "bmm", "with_indices")
    assert not [title for title in found if any(word in title.lower() for word in hidden)]


def test_a_function_in_a_loop_is_one_call_for_each_turn(tmp_path):
    torch = engine("torch")

    def program(torch):
        h, w = torch.randn(2, 4), torch.randn(4, 4, requires_grad=True)
        for _ in range(3):
            h = torch.nn.functional.linear(h, w)
        h.sum().backward()

    timeline = recorded(tmp_path, program, torch)
    calls = [*source_calls(timeline, map(timeline.info, timeline.nodes))]
    assert [call.name for call in calls] == ["linear"] * 3 + ["sum"]
    assert all(len(call.nodes) == 2 for call in calls[:3])


@pytest.mark.parametrize("model", MODELS)
def test_a_picture_without_options_fits_a_page_and_says_what_it_collapsed(tmp_path, model):
    torch = engine("torch")
    recorded(tmp_path, MODELS[model], torch)
    notes = []
    (path,) = export(tmp_path / "t.gviz", tmp_path / "p.svg", note=notes.append, timeout=120)
    svg = path.read_text()
    size = re.search(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert float(size[1]) <= PAGE[0]
    assert float(size[2]) <= PAGE[1]
    assert min(map(float, re.findall(r'font-size="([\d.]+)"', svg))) >= 9
    assert any("boxes: " in note and 'level="nodes"' in note for note in notes)
    assert "cross_entropy" in svg or "nll_loss" in svg
    assert 'class="cluster' in svg


@pytest.mark.parametrize("figure", [False, "one-column"])
def test_labels_that_were_requested_are_not_shortened(tmp_path, figure):
    torch = engine("torch")

    def program(torch):
        nn = torch.nn
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        encoder(torch.randn(3, 7, 16)).mean().backward()

    recorded(tmp_path, program, torch)

    def picture(labels):
        notes = []
        (path,) = export(
            tmp_path / "t.gviz", tmp_path / "p.svg", labels=labels, figure=figure, note=notes.append, force=True
        )
        return notes[0], path.read_text().count(">value</text>")

    note, rows = picture(None)
    assert re.search("each box shows one line|boxes show names (only|and gradients)", note)
    assert rows == 0
    note, rows = picture("short")
    assert not re.search("each box shows one line|boxes show names (only|and gradients)", note)
    assert rows > 0


def test_equal_layers_are_one_box_and_one_can_be_expanded(tmp_path):
    torch = engine("torch")
    timeline = recorded(tmp_path, MODELS["transformer, 12 layers"], torch)
    scene, _ = drawn(timeline, level="modules")
    assert "layers.0–11 Block ×12" in titles(scene)
    (box,) = (box for box in scene.boxes if "×12" in box.title)
    assert [row.label for row in box.rows][-2:] == [".grad", "each"]
    scene, _ = drawn(timeline, level="modules", expand=("layers.3",))
    found = titles(scene)
    assert {"layers.0–2 Block ×3", "layers.3.attn Attention", "layers.4–11 Block ×8"} <= {*found}


@pytest.mark.parametrize("name", ["randn_like", "zeros_like"])
def test_noise_of_the_same_shape_is_no_cut_and_the_numbers_of_a_tensor_are_one(tmp_path, name):
    def program(torch):
        mu = torch.ones(2, 3, requires_grad=True)
        scale = mu.exp()
        eps = getattr(torch, name)(scale)
        copied = torch.tensor([float(mu[0, 0]), mu.sum()])
        z = mu + eps * scale
        (z.sum() + copied.sum()).backward()

    timeline = recorded(tmp_path, program, engine("torch"))
    for density in ("short", "brief"):
        drawn = moment_scene(timeline, len(timeline), Options(marks=True, density=density))
        states = {box.title.partition(" ")[0]: {*box.states} for box in drawn.boxes}
        assert "cut" not in states["eps"]
        assert "cut" in states["copied"]
        words = {box.title.partition(" ")[0]: [row.text for row in box.rows] for box in drawn.boxes}
        assert words["eps"][-1] in ("takes only a shape", "no grad")
        assert any(sign.startswith("numbers: not tracked") for sign in legend(drawn))


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_the_number_in_a_call_is_in_its_title_and_its_box_is_no_wider(tmp_path, name):
    def program(torch):
        x = torch.ones(4, 3, requires_grad=True)
        h = torch.nn.functional.gelu(0.5 * x)
        y = (1 - h) / 8 + h**2
        z = y - 1
        (z * h).sum().backward()

    timeline = recorded(tmp_path, program, engine(name))
    scene, _ = drawn(timeline, level="calls")
    found = {*titles(scene)}
    assert {"mul 0.5", "div 8", "pow 2", "sub 1", "mul"} <= {title.rpartition(" = ")[2] for title in found}
    assert {"rsub 1", "1 sub"} & found
    alone = {box.node: box.width for box in drawn(timeline, level="nodes")[0].boxes}
    assert all(box.width <= alone[box.node] + len(" 0.5") for box in scene.boxes if box.op)


def test_calls_next_to_an_expanded_module_keep_the_names_of_their_functions(tmp_path):
    torch = engine("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU())
            self.act = torch.nn.Softmin(1)

        def forward(self, x):
            x = torch.nn.functional.adaptive_avg_pool1d(self.block(x), 1).flatten(1)
            return self.act(x)

    def program(torch):
        Net()(torch.ones(2, 3, 6)).sum().backward()

    timeline = recorded(tmp_path, program, torch)
    for options in ({}, {"level": "modules"}):
        for expand in ((), ("block",)):
            assert {"adaptive_avg_pool1d", "x = flatten"} <= {*titles(drawn(timeline, **options, expand=expand)[0])}
    assert {"neg", "softmax"} <= {*titles(drawn(timeline, level="modules", expand=("act",))[0])}


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_the_steps_of_a_loop_are_one_box(tmp_path, name):
    timeline = recorded(tmp_path, MODELS["LSTM, 5 steps"], engine(name))
    scene, _ = drawn(timeline, level="modules")

    assert [title for title in titles(scene) if title.startswith("step") and title.endswith("×5")]


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_equal_parts_of_a_sequence_are_named_by_its_modules_and_those_of_a_loop_are_steps(tmp_path, name):
    def layers(torch):
        return [layer for _ in range(5) for layer in (torch.nn.Linear(6, 6), torch.nn.Tanh())]

    def sequence(torch):
        torch.nn.Sequential(*layers(torch))(torch.ones(3, 6)).sum().backward()

    def loop(torch):
        layer, x = torch.nn.Linear(6, 6), torch.ones(3, 6)
        for _ in range(5):
            x = torch.tanh(layer(x))
        x.sum().backward()

    for program, title in ((sequence, "0–9 Linear, Tanh ×5"), (loop, "step Linear, tanh ×5")):
        folder = tmp_path / program.__name__
        folder.mkdir()
        timeline = recorded(folder, program, engine(name))
        assert title in titles(drawn(timeline, level="modules")[0])
        typed = title.partition(" ")[0].replace("–", "-")
        assert title not in titles(drawn(timeline, level="modules", expand=(typed,))[0])


def bars_of(scene):
    """Return the label, the bars and the range of the box of equal parts."""
    (box,) = (box for box in scene.boxes if "×" in box.title and "data" not in box.title)
    row = box.rows[-1]
    drawn, _, between = row.text.partition("  ")
    return row.label, drawn, between


def hand_written_loop(torch):
    w, h = torch.full((4,), 0.5, requires_grad=True), torch.ones(4)
    for _ in range(12):
        h = torch.tanh(h * w)
    h.sum().backward()


def two_carried(torch):
    w, h, c, total = torch.full((4,), 0.5, requires_grad=True), torch.ones(4), torch.ones(4), 0.0
    for _ in range(12):
        h = torch.tanh(h * w + c)
        c = c * w
        total = total + h.sum()
    (total + h.sum()).backward()


@pytest.mark.parametrize("program", [hand_written_loop, two_carried])
@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_the_box_of_a_loop_shows_how_the_gradient_of_its_result_vanishes(tmp_path, name, program):
    timeline = recorded(tmp_path, program, engine(name))
    scene, _ = drawn(timeline, level="modules")
    label, drawn_bars, between = bars_of(scene)
    assert (label, len(drawn_bars)) == ("|∂L/∂h|", 12)
    steps = [node for node in timeline.nodes if timeline.info(node).op and timeline.info(node).op.name == "tanh"]
    norms = [norm(state.outputs[0].incoming) for state in timeline.at(len(timeline)).states(steps)]
    assert between == f"{number(min(norms), 3)} .. {number(max(norms), 3)}"
    ordered = sorted(zip(norms, drawn_bars, strict=True))
    assert [bar for _, bar in ordered] == sorted(drawn_bars)
    assert any(sign.startswith("|∂L/∂h| ▁▃▆: ") for sign in legend(scene))


def test_a_step_without_a_gradient_has_no_bar_and_before_the_pass_there_are_none(tmp_path):
    def program(torch):
        w, h = torch.full((4,), 0.5, requires_grad=True), torch.ones(4)
        for step in range(12):
            h = torch.tanh(h * w)
            if step == 5:
                h.register_hook(lambda g: g)
                cut = h
        torch.autograd.grad(h.sum(), cut)

    timeline = recorded(tmp_path, program, engine("torch"))
    scene, _ = drawn(timeline, level="modules")
    label, drawn_bars, _ = bars_of(scene)
    assert (label, drawn_bars[:5]) == ("|∂L/∂h|", "·" * 5)
    assert "·" not in drawn_bars[5:]
    assert any(sign.startswith("· among bars: ") for sign in legend(scene))
    words = drawing(timeline, len(timeline), ExportOptions(part=Part(level="modules"), note=lambda _: None), fits=True)
    forward_end = timeline.phases[0].end
    assert bars_of(moment_scene(timeline, forward_end, words))[:2] == ("|∂L/∂h|", NO_VALUE)


def test_brief_boxes_keep_the_bars_of_a_loop_and_of_equal_layers(tmp_path):
    torch = engine("torch")
    timeline = recorded(tmp_path, hand_written_loop, torch)
    options = ExportOptions(drawing=Options(density="brief", clusters=True, marks=True), part=Part(level="modules"))
    words = drawing(timeline, len(timeline), replace(options, note=lambda _: None), fits=True)
    label, drawn_bars, _ = bars_of(moment_scene(timeline, len(timeline), words))
    assert (label, len(drawn_bars)) == ("|∂L/∂h|", 12)


def test_steps_with_several_modules_that_share_their_parameters_have_the_bars_of_steps(tmp_path):
    torch = engine("torch")

    def program(torch):
        cell, head, h, loss = torch.nn.RNNCell(4, 8), torch.nn.Linear(8, 1), torch.zeros(3, 8), 0.0
        for x in torch.randn(12, 3, 4):
            h = cell(x, h)
            loss = loss + head(h).mean()
        loss.backward()

    label, drawn_bars, between = bars_of(drawn(recorded(tmp_path, program, torch), level="modules")[0])
    assert (label, len(drawn_bars)) == ("|∂L/∂h|", 12)
    assert len({*between.split(" .. ")}) == 2


@pytest.mark.parametrize(
    "typed", ["step", "step*", "step ×12", "step x12", "step mul, tanh ×12", "step m… ×12", "st?p", "*tanh ×12"]
)
@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_every_text_that_names_a_fold_opens_it(tmp_path, name, typed):
    timeline = recorded(tmp_path, hand_written_loop, engine(name))
    assert "step mul, tanh ×12" in titles(drawn(timeline, level="modules")[0])
    opened = titles(drawn(timeline, level="modules", expand=(typed,))[0])
    assert not [title for title in opened if "×" in title]
    assert opened.count("h = tanh") == 12


def test_a_fold_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    timeline = recorded(tmp_path, hand_written_loop, engine("gviz.engine"))
    with pytest.raises(GvizError, match="no module fits stairs") as caught:
        drawn(timeline, level="modules", expand=("stairs",))
    assert caught.value.hint == "equal parts: step"


ODD = ["it's", 'a "b"', "two words", "[x] ×2", "$HOME", "layers.new"]


@pytest.mark.parametrize("odd", ODD)
def test_the_option_below_a_picture_can_be_pasted_whatever_the_modules_are_called(tmp_path, odd):
    torch = engine("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(9)]
            self._modules[odd] = torch.nn.ModuleList(blocks)

        def forward(self, x):
            for block in self._modules[odd]:
                x = block(x)
            return x

    timeline = recorded(tmp_path, lambda torch: Net()(torch.randn(2, 4)).sum().backward(), torch)
    _, (note,) = drawn(timeline, level="modules")
    folded = re.search(r"(\S.*–8) ×9 is one box", note.partition(": ")[2].removeprefix("modules collapsed; "))[1]
    option, name, *_ = shlex.split(note.partition("More: ")[2])
    assert (option, name) == ("--expand", f"{odd}.0")
    for typed in (name, folded, f"{odd}.1–8 Sequential ×8"):
        opened = titles(drawn(timeline, level="modules", expand=(typed,))[0])
        assert not [title for title in opened if title.endswith("×9")], typed


def two_loops(torch):
    w, h = torch.full((4,), 0.5, requires_grad=True), torch.ones(4)
    for _ in range(5):
        h = torch.tanh(h * w)
    for _ in range(7):
        h = torch.sin(h * w)
    h.sum().backward()


def test_the_option_names_one_of_several_loops(tmp_path):
    timeline = recorded(tmp_path, two_loops, engine("torch"))
    _, (note,) = drawn(timeline, level="modules")
    assert "More: --expand 'step ×5' or --level calls" in note
    opened, _ = drawn(timeline, level="modules", expand=("step ×5",))
    assert [title for title in titles(opened) if "×" in title] == ["step mul, sin ×7"]


def own_weights(torch):
    h, weights = torch.ones(4), []
    for _ in range(60):
        weights.append(torch.full((4,), 0.5, requires_grad=True))
        h = torch.sin(h * weights[-1]) + h
    h.sum().backward()


def own_data(torch):
    w, loss = torch.full((4,), 0.5, requires_grad=True), 0.0
    for _ in range(60):
        loss = loss + torch.sin(torch.rand(4) * w).sum()
    loss.backward()


def shared_data(torch):
    w, x, loss = torch.full((4,), 0.5, requires_grad=True), torch.rand(4), 0.0
    for _ in range(60):
        loss = loss + torch.sin(x * w).sum()
    loss.backward()


def data_in_a_module(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4))

        def forward(self):
            h = torch.zeros(4)
            for _ in range(60):
                h = torch.tanh(h * self.w) + torch.full((4,), 0.5)
            return h

    Net()().sum().backward()


@pytest.mark.parametrize(
    ("program", "expected", "text"),
    [
        (own_weights, ["h const", "step mul, sin, add ×60", "sum"], "240 params"),
        (own_data, ["w leaf", "data ×60", "step mul, sin, sum, add ×60"], ""),
        (shared_data, ["w leaf", "x const", "step mul, sin, sum, add ×60"], ""),
        (data_in_a_module, ["h const", "step mul, tanh, add ×60", "sum"], "4 params"),
    ],
    ids=["weights of each step", "data of each step", "data of all steps", "data in a module"],
)
@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_weights_of_each_step_lie_in_its_box_and_their_data_in_one(tmp_path, name, program, expected, text):
    scene, _ = drawn(recorded(tmp_path, program, engine(name)), level="modules")
    assert titles(scene) == expected
    rows = " ".join(f"{row.label} {row.text}" for box in scene.boxes if "step" in box.title for row in box.rows)
    assert text in rows
    assert ("params" in rows, ".grad" in rows) == (bool(text), bool(text))
    assert {edge.target for edge in scene.edges if edge.kind == "forward"} <= {box.key for box in scene.boxes}


def test_the_input_of_a_deep_net_has_an_arrow_though_its_first_node_is_not_tracked(tmp_path):
    torch = engine("torch")

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.tanh(self.linear(x.t())).t()

    def program(torch):
        net, x = torch.nn.Sequential(*(Block() for _ in range(16))), torch.ones(2, 2)
        net(x).sum().backward()

    scene, _ = drawn(recorded(tmp_path, program, torch))
    (x,) = (box.key for box in scene.boxes if box.title.startswith("x const"))
    assert any(edge.source == x for edge in scene.edges)


def test_a_buffer_is_in_its_module_in_every_iteration(tmp_path):
    torch = engine("torch")

    def program(torch):
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
        for _ in range(2):
            net(torch.randn(8, 4)).mean().backward()

    scene, _ = drawn(recorded(tmp_path, program, torch), level="calls")
    assert [title for title in titles(scene) if "BatchNorm" in title] == ["1 BatchNorm1d"]
    assert not [title for title in titles(scene) if "running" in title]


def test_a_buffer_is_in_its_module_where_a_program_has_several_models(tmp_path):
    torch = engine("torch")

    class Net(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(4, size), torch.nn.BatchNorm1d(size))

        def forward(self, x):
            return self.net(x)

    def program(torch):
        first, second = Net(4), Net(2)
        for _ in range(2):
            second(first(torch.randn(8, 4))).pow(2).mean().backward()

    timeline = recorded(tmp_path, program, torch)
    names = {timeline.info(node).name for node in timeline.nodes}
    assert {"first.net.1.running_mean", "second.net.1.running_mean"} <= names
    scene, _ = drawn(timeline, level="calls")
    assert [title for title in titles(scene) if "BatchNorm" in title] == ["net.1 BatchNorm1d"] * 2
    assert not [title for title in titles(scene) if "running" in title or "Sequential" in title]


def test_a_collapsed_module_with_nan_gradients_says_nan(tmp_path):
    torch = engine("torch")

    def program(torch):
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
        (net(torch.randn(2, 4)).sum() * float("nan")).backward()

    scene, _ = drawn(recorded(tmp_path, program, torch), level="modules")
    rows = [row for box in scene.boxes if box.role == "module" for row in box.rows if row.label == ".grad"]
    assert [row.text for row in rows] == ["|g| nan"] * 2
    assert {row.style for row in rows} == {"bad"}


def test_what_has_no_gradient_after_a_pass_and_where_the_graph_is_cut_is_marked(tmp_path):
    torch = engine("torch")

    def program(torch):
        w, v = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        h = (w * 2).detach()
        (h * v).sum().backward()

    scene, _ = drawn(recorded(tmp_path, program, torch))
    status = {re.sub(r" (leaf )?#\d+$", "", box.title): box.status for box in scene.boxes}
    assert (status["w"], status["v"], status["h = detach"]) == ("no gradient", "done", "cut")
    (cut,) = (box for box in scene.boxes if box.status == "cut")
    assert cut.rows[-1].text.startswith("cut by detach at test_detail_that_fits.py:")


@pytest.mark.parametrize("density", ["min", "brief"])
def test_a_box_of_one_line_has_the_line_of_the_cut_in_its_corner(tmp_path, density):
    torch = engine("torch")

    class Cut(torch.nn.Module):
        def forward(self, x):
            return (x * 2).detach() + x

    def program(torch):
        w = torch.ones(2, requires_grad=True)
        h = (w * 2).detach()
        Cut()(h * w).sum().backward()

    timeline = recorded(tmp_path, program, torch)
    lines = {info.frames[0].line for info in map(timeline.info, timeline.nodes) if info.op.name == "detach"}
    for closed in (frozenset(), frozenset({"Cut"})):
        options = replace(Options(marks=True), density=density, graph_filter=Filter(closed))
        scene = moment_scene(timeline, len(timeline), options)
        assert {box.status for box in scene.boxes if "cut" in box.status} == {f"cut :{line}" for line in lines}


def test_the_data_of_a_graph_that_an_older_iteration_began_are_drawn_as_well(tmp_path):
    torch = engine("torch")
    scene, _ = drawn(recorded(tmp_path, MODELS["GAN"], torch))
    assert any(title.startswith("noise") for title in titles(scene))
    kinds = {(edge.source, edge.target): edge.kind for edge in scene.edges}
    backward = [(source, target) for (source, target), kind in kinds.items() if kind == "gradient"]
    assert all((target, source) in kinds for source, target in backward)


def test_runs_are_the_longest_repetitions_from_the_left():
    assert [*runs([0, 1, 2, 1, 2, 1, 2, 3])] == [(0, 1, 1), (1, 2, 3), (7, 1, 1)]
    assert [*runs([1, 1, 1, 1])] == [(0, 1, 4)]
    assert [*runs([])] == []


def small_net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            h = torch.relu(self.enc(x))
            return self.head(h.detach().reshape(5, 8))

    def step():
        loss = nn.functional.cross_entropy(Net()(torch.randn(5, 4)), torch.arange(5) % 3)
        loss.backward()

    step()


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
@pytest.mark.parametrize("part", [{}, {"depth": 1}, {"depth": 2}])
def test_a_small_model_has_the_public_names_of_its_calls(tmp_path, name, part):
    scene, _ = drawn(recorded(tmp_path, small_net, engine(name)), **part)
    found = {title.rpartition(" = ")[2].removeprefix("[+] ") for title in titles(scene)}
    assert {"enc Linear", "head Linear", "detach", "cross_entropy"} <= found
    assert not {"t", "addmm", "nll_loss", "log_softmax"} & {name.lower() for name in found}


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_a_program_of_public_calls_alone_shows_every_node(tmp_path, name):
    def program(torch):
        x = torch.randn(3, requires_grad=True)
        (x * 2).exp().sum().backward()

    scene, notes = drawn(recorded(tmp_path, program, engine(name)))
    assert [title.rpartition(" = ")[2] for title in titles(scene)][-3:] == ["mul", "exp", "sum"]
    assert not notes


def test_no_line_between_collapsed_modules_is_a_view(tmp_path):
    torch = engine("torch")

    def program(torch):
        nn = torch.nn
        net = nn.Sequential(*(nn.Sequential(nn.Flatten(0, 1), nn.Linear(4, 4), nn.Unflatten(0, (2, 3))) for _ in "ab"))
        net(torch.randn(2, 3, 4)).sum().backward()

    scene, _ = drawn(recorded(tmp_path, program, torch), depth=1)
    modules = {box.key for box in scene.boxes if box.role == "module"}
    between = [edge for edge in scene.edges if edge.target in modules]
    assert between
    assert {edge.kind for edge in between} <= {"forward", "gradient"}


def test_a_cut_is_amber_and_has_a_word_also_when_its_node_is_freed(tmp_path):
    timeline = recorded(tmp_path, small_net, engine("torch"))
    scene, _ = drawn(timeline)
    (cut,) = (box for box in scene.boxes if "cut" in box.states)
    assert "freed" in cut.states
    assert painted(cut) == "missing"
    assert any(sign.startswith("amber, cut") for sign in legend(scene))
    words = drawing(timeline, len(timeline), ExportOptions(drawing=Options(density="min", clusters=True, marks=True)))
    text = dot(moment_scene(timeline, len(timeline), words))
    (line,) = (line for line in text.splitlines() if "detach" in line.lower() and "->" not in line)
    assert re.search(r">cut :\d+<", line)  # with the line of the program
    assert "dashed" not in line


def test_the_legend_has_no_signs_of_lines_without_labels(tmp_path):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()

    scene, _ = drawn(recorded(tmp_path, program, engine("torch")))
    for sign in ("+=: ", "∂L/∂h: "):
        assert any(text.startswith(sign) for text in legend(replace(scene, compact=False)))
        assert not any(text.startswith(sign) for text in legend(replace(scene, compact=True)))


def own_function(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x)
            return y * (y > 0).float()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    x = torch.tensor([1.0, -2.0], requires_grad=True)
    h = Square.apply(x)
    h.register_hook(lambda g: g * 3)
    loss = h.sum()
    loss.backward()


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_what_a_custom_function_and_a_hook_compute_has_no_boxes_of_its_own_and_is_no_cut(tmp_path, name):
    timeline = recorded(tmp_path, own_function, engine(name))
    scene, _ = drawn(timeline)
    assert [title.rpartition(" = ")[2] for title in titles(scene)] == ["x leaf", "Square", "sum"]
    (function,) = (box for box in scene.boxes if "Square" in box.title)
    assert function.rows[0].text.startswith("5 nodes: mul, gt")
    assert not any("cut" in box.states for box in scene.boxes)
    every, _ = drawn(timeline, level="nodes")
    assert len(every.boxes) > 6
    assert not any("cut" in box.states for box in every.boxes)


@pytest.mark.parametrize("name", ["torch", "gviz.engine"])
def test_a_graph_of_gradients_that_the_program_uses_is_drawn(tmp_path, name):
    def program(torch):
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (g * g).sum().backward()

    scene, _ = drawn(recorded(tmp_path, program, engine(name)))
    assert any("backward" in box.states for box in scene.boxes)


def test_a_number_reads_the_same_in_a_box_of_a_call_and_in_one_of_a_node(tmp_path):
    def program(torch):
        x = torch.tensor([1.23456, 2.34567], requires_grad=True)
        w = torch.tensor([[1.11111, 0.0], [0.0, 1.22222]])
        (torch.nn.functional.linear(x * 1.0, w) * 1.0).sum().backward()

    scene, _ = drawn(recorded(tmp_path, program, engine("torch")), level="calls")
    rows = {(box.title.partition(" #")[0], row.label): row.text for box in scene.boxes for row in box.rows}
    assert rows["linear", "value"] == rows["mul 1", "value"] == "[1.37 2.87]"


def chain(torch):
    x = torch.randn(4, requires_grad=True)
    y = x.sin().exp()
    z = y.cos() + x
    z.sum().backward()


def convolutions(torch):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(64, 10)

        def forward(self, x):
            return self.last(F.max_pool2d(F.relu(self.first(x)), 2).flatten(1))

    F.cross_entropy(Net()(torch.randn(8, 1, 8, 8)), torch.arange(8)).backward()


@pytest.mark.parametrize("level", ["calls", "modules"])
def test_what_a_depth_hides_is_shown_by_a_greater_depth_not_by_a_level(tmp_path, level):
    timeline = recorded(tmp_path, convolutions, engine("torch"))
    scene, notes = drawn(timeline, level=level, depth=0)
    assert notes[0].endswith("modules collapsed. More: --depth 1 or --level nodes")  # nodes: cross_entropy is one box
    assert len(drawn(timeline, level=level, depth=1)[0].boxes) > len(scene.boxes)
    assert len(drawn(timeline, level="nodes", depth=0)[0].boxes) > len(scene.boxes)


@pytest.mark.parametrize("level", ["calls", "modules"])
def test_an_option_that_was_used_or_does_not_show_more_is_not_suggested(tmp_path, level):
    timeline = recorded(tmp_path, convolutions, engine("torch"))
    _, notes = drawn(timeline, level=level)
    assert f"--level {level}" not in notes[0]
    assert "--depth" not in notes[0]
    _, notes = drawn(timeline, level=level, depth=3)
    assert "--depth" not in notes[0]


@pytest.mark.parametrize("part", [{"level": "modules", "depth": 0}, {"level": "calls"}, {"level": "calls", "depth": 1}])
def test_a_picture_with_a_box_for_each_node_has_no_note(tmp_path, part):
    scene, notes = drawn(recorded(tmp_path, chain, engine("torch")), **part)
    assert len(scene.boxes) > 5
    assert (notes, scene.remark) == ([], "")


@pytest.mark.parametrize("part", [{"only": ("Net",)}, {"depth": 1}, {"depth": 1, "only": ("Net",)}])
def test_a_part_of_a_graph_has_boxes_of_calls_with_public_names(tmp_path, part):
    scene, _ = drawn(recorded(tmp_path, convolutions, engine("torch")), **part)
    found = {title.rpartition(" = ")[2] for title in titles(scene)}
    assert {"relu", "max_pool2d", "flatten"} <= found
    assert not {"Relu", "Max_pool2d_with_indices", "View"} & found


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("density", ["short", "brief", "full"])
@pytest.mark.parametrize("level", ["modules", "calls", "nodes"])
def test_a_norm_has_the_same_digits_in_all_boxes(tmp_path, level, density, style):
    timeline = recorded(tmp_path, convolutions, engine("torch"))
    options = ExportOptions(part=Part(level=level), style=style, note=lambda note: None)
    words = replace(drawing(timeline, len(timeline), options, fits=True), density=density)
    scene = moment_scene(timeline, len(timeline), words)
    norms = {norm for box in scene.boxes for row in box.rows for norm in re.findall(r"\|g\| ([\d.e-]+)", row.text)}
    exact = {number(found, 3) for node in timeline.nodes for found in gradient_norms(timeline, node)}
    assert norms
    assert level == "modules" or norms & exact
    rounded = {number(float(norm), 2) for norm in norms}
    assert len(rounded) == len(norms), norms


def gradient_norms(timeline, node):
    state = timeline.at(len(timeline)).state(node)
    values = [value for output in state.outputs for value in (output.incoming, output.grad) if value is not None]
    return [length for value in values if (length := norm(value)) is not None]


@pytest.mark.parametrize("framework", ["gviz.engine", "torch"])
@pytest.mark.parametrize("level", ["auto", "modules", "calls"])
def test_a_loss_that_is_a_module_is_drawn_as_the_result(tmp_path, framework, level):
    torch = engine(framework)

    def program(torch):
        net, criterion = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.nn.MSELoss()
        loss = criterion(net(torch.randn(8, 4)), torch.randn(8, 4))
        loss.backward()

    scene, _ = drawn(recorded(tmp_path, program, torch), level=level)
    (root,) = [box for box in scene.boxes if box.role == "root"]
    assert root.title.startswith("loss = mse_loss")
    assert not [box.title for box in scene.boxes if "MSELoss" in box.title]


def test_equal_parts_inside_of_a_module_do_not_keep_it_expanded():
    whole, closed = Filter(repeats=True), Filter(frozenset({"Block"}), repeats=True)
    with_repeats = GraphView(whole, 49, ("step ×3",), longest=3)
    parts = [GraphView(replace(whole, repeats=False), 61), with_repeats, GraphView(closed, 13)]
    assert most_informative(parts, 130) == [with_repeats, GraphView(closed, 13)]
    assert most_informative(parts, 20) == [GraphView(closed, 13)]


def test_a_module_that_is_not_tracked_is_one_box_and_not_its_parameters(tmp_path):
    torch = engine("gviz.engine")

    def program(torch):
        net, target = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
        optimizer, criterion = torch.optim.SGD(net.parameters(), lr=0.1), torch.nn.MSELoss()
        for _ in range(2):
            x = torch.randn(4, 3)
            with torch.no_grad():
                y = target(x).tanh()
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    scene, _ = drawn(recorded(tmp_path, program, torch), level="auto")
    assert {box.role for box in scene.boxes if "Linear" in box.title} == {"module"}
    assert not [box.title for box in scene.boxes if box.role == "parameter"]


def gan(torch, losses):
    nn, optim = torch.nn, torch.optim
    generator, critic = (nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(2))
    for _ in range(2):
        optim.SGD(critic.parameters(), 0.1).zero_grad()
        fake = generator(torch.ones(3, 2))
        d_loss = critic(fake.detach()).mean()
        d_loss.backward()
        g_loss = -critic(fake).mean()
        if not losses:
            (g_loss * 2).backward(retain_graph=True)
        g_loss.backward()


@pytest.mark.parametrize(("losses", "text"), [(True, " of d_loss and g_loss"), (False, ", passes 4, 5, 6")])
def test_the_gradients_of_a_critic_name_the_passes_that_they_come_from(tmp_path, losses, text):
    timeline = recorded(tmp_path, lambda torch: gan(torch, losses), engine("torch"))
    scene, _ = drawn(timeline, level="modules")
    grads = [row.text for box in scene.boxes for row in box.rows if row.label == ".grad" and "|g|" in row.text]
    assert len([one for one in grads if one.endswith(text)]) >= 2
    assert not [one for one in grads if "all passes" in one]


def test_a_note_names_options_in_the_words_of_its_caller_and_none_in_a_figure(tmp_path):
    def program():
        net = builtin.nn.Sequential(
            *(builtin.nn.Sequential(builtin.nn.Linear(4, 4), builtin.nn.Tanh()) for _ in "1234")
        )
        return net(builtin.randn(2, 4)).sum()

    timeline = timeline_of(program)
    notes = []
    gviz.export(timeline, tmp_path / "a.svg", level="modules", note=notes.append)
    assert 'More: expand="0" or level="calls" or level="nodes"' in notes[0]
    with option_words.as_typed():
        gviz.export(timeline, tmp_path / "b.svg", level="modules", note=notes.append)
    assert "More: --expand 0 or --level calls or --level nodes" in notes[1]
    gviz.export(timeline, tmp_path / "c.svg", level="modules", figure=True, note=notes.append)
    assert "is one box" in notes[2]
    assert "More" not in notes[2]


def block_class(torch, mask_of):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.register_buffer("own", torch.ones(4, 4).triu(1) == 1)

        def forward(self, x, shared):
            q, k, v = self.qkv(x).chunk(3, -1)
            scores = (q @ k.transpose(-2, -1)).masked_fill(mask_of(torch, self, shared), float("-inf"))
            return x + self.out(torch.softmax(scores, -1) @ v)

    return Block


def made_once(torch, _, shared):
    if not shared:
        shared.append(torch.ones(4, 4).triu(1) == 1)
    return shared[0]


MASKS = {
    "shared": lambda torch, block, shared: shared,
    "made in each block": lambda torch, block, shared: torch.ones(4, 4).triu(1) == 1,
    "a buffer": lambda torch, block, shared: block.own,
    "made in the first block": made_once,
}


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("kind", MASKS)
def test_equal_blocks_are_one_box_wherever_their_mask_comes_from(kind, count):
    block = block_class(builtin, MASKS[kind])

    class Net(builtin.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = builtin.nn.ModuleList([block() for _ in range(count)])

        def forward(self, x):
            mask = [] if kind == "made in the first block" else builtin.ones(4, 4).triu(1) == 1
            for one in self.blocks:
                x = one(x, mask)
            return x

    timeline = timeline_of(lambda: Net()(builtin.randn(4, 8)).square().mean().backward())
    drawn = titles(drawn_at(timeline, level="modules"))
    assert any(title.endswith(f"×{count}") for title in drawn), drawn


def drawn_at(timeline, **part):
    return drawn(timeline, **part)[0]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("aab", [(0, 1, 2), (2, 1, 1)]),
        ("aabbc", [(0, 1, 2), (2, 1, 1), (3, 1, 1), (4, 1, 1)]),  # a b is no module of several calls
        ("aabaab", [(0, 1, 2), (2, 1, 1), (3, 1, 2), (5, 1, 1)]),
        ("aacacac", [(0, 1, 1), (1, 2, 3)]),  # the longer repeat begins at the second
        ("aaa", [(0, 1, 3)]),
        ("aa", [(0, 1, 2)]),
        ("a", [(0, 1, 1)]),
        ("", []),
    ],
)
def test_two_equal_modules_are_a_repeat_unless_a_longer_one_begins_at_the_second(kinds, expected):
    assert [*runs([*map(ord, kinds)], {ord("a")})] == expected

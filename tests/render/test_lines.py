"""The lines of pictures: gradients as mathematics, hooks, the residual stream; and the table of signs below."""

import json
import re
from dataclasses import replace

from recording import timeline_of
from render.test_programs import product_and_sine, written_through_a_view

import gviz.engine as torch
from gviz.events import HookRan
from gviz.render.boxes.folding import Filter
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.node_states import SHOWN
from gviz.render.graphviz.box_label import table
from gviz.render.graphviz.dot import Manner, dot
from gviz.render.graphviz.legend_table import BOXES, LINES, legend_rows
from gviz.render.graphviz.process import draw
from gviz.render.graphviz.spine import spine
from gviz.render.legend import SIGNS, key, legend
from gviz.render.picture_request import ExportOptions, Part, drawing, last_moment, moment_scene
from gviz.render.theme import LIGHT


def picture(program, **options):
    timeline = timeline_of(program)
    return moment_scene(timeline, last_moment(timeline), Options(marks=True, **options))


def formulas(scene):
    return {edge.formula for edge in scene.edges if edge.kind == "gradient"}


def test_gradients_are_mathematics_a_whole_one_is_equal_and_a_part_is_added():
    drawn = picture(product_and_sine)
    assert {"∂L/∂x += 4", "∂L/∂y = 1.92"} <= formulas(drawn)
    assert "∂L/∂h: gradient of the result L with respect to h" in legend(drawn)
    assert "∂L/∂y = 1.92" in dot(drawn)


def test_the_result_has_another_sign_where_the_program_has_its_own_L():
    def cost_of_a_length():
        w, L = (torch.tensor(value, requires_grad=True) for value in (3.0, 2.0))
        area = w * L
        cost = area**2
        cost.backward()
        return w, L, area, cost

    def two_results_of_a_length():
        w, L = (torch.tensor(value, requires_grad=True) for value in (3.0, 2.0))
        area, J = w * L, w + L
        (area + 1).backward()
        (J * 2).backward()
        return w, L, area, J

    def loss_called_L():
        x = torch.tensor(3.0, requires_grad=True)
        L = x * x
        L.backward()
        return x, L

    drawn = picture(cost_of_a_length)
    assert {"∂cost/∂w = 24", "∂cost/∂L = 36", "∂cost/∂area = 12"} <= formulas(drawn)
    assert "∂cost/∂h: gradient of the result cost with respect to h" in legend(drawn)
    assert not any("L: " in sign for sign in key(drawn))
    drawn = picture(two_results_of_a_length)
    assert "∂E/∂J = 2" in formulas(drawn)
    assert any(sign.startswith("E: ") for sign in key(drawn))
    assert "∂L/∂x += 3" in formulas(picture(loss_called_L))


def norm_of_many():
    x = torch.ones(5, 5, requires_grad=True)
    a_very_long_name = x * 2
    loss = a_very_long_name.sum() + (x * 3).sum()
    loss.backward()
    return x, a_very_long_name, loss


def test_the_norm_of_a_gradient_is_a_formula_and_a_long_name_is_left_out():
    def alone():
        h = torch.ones(5, 5, requires_grad=True)
        (h * 2).sum().backward()
        return h

    assert "|∂L/∂h| = 10" in formulas(picture(alone))
    found = formulas(picture(norm_of_many))
    assert "∂L/∂x += |g| 10" in found
    assert not any("a_very_long_name" in formula for formula in found)


def hooked():
    def double(g):
        return g * 2

    def watch(g):
        pass

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    h.register_hook(double)
    loss = h.sum()
    loss.register_hook(watch)
    loss.backward()
    return x, h, loss


def test_a_hook_is_a_mark_on_the_line_whose_gradient_it_changed():
    drawn = picture(hooked)
    (line,) = (edge for edge in drawn.edges if edge.hooks)
    titles = {box.key: box.title for box in drawn.boxes}
    assert titles[line.target].startswith("h = ")
    assert line.hook_text == "hook double"
    assert line.formula == "∂L/∂h += [1 1]"  # not equal: the hook changes it
    (remark,) = line.remarks
    assert "the hook double changed [1 1] to [2 2]" in remark
    assert "registered at test_lines.py" in remark
    (text,) = (text for text in dot(drawn).splitlines() if "arrowtail=normalodot" in text)
    assert "hook double" in text
    assert "changed [1 1] to [2 2]" in text
    assert "circle on an arrow, hook: a hook of the program changed this gradient" in legend(drawn)
    calm = picture(product_and_sine)
    assert "arrowtail" not in dot(calm)
    assert not any("hook" in sign for sign in legend(calm))


def test_before_a_hook_runs_there_is_no_mark():
    timeline = timeline_of(hooked)
    (ran,) = (seq for seq, event in timeline.select((HookRan,)) if event.name == "double")
    marked = [any(edge.hooks for edge in moment_scene(timeline, n, Options(marks=True)).edges) for n in (ran - 1, ran)]
    assert marked == [False, True]


def test_a_hook_in_a_collapsed_module_is_named_in_its_box():
    def program():
        net = torch.nn.Linear(3, 3)
        net.weight.register_hook(lambda g: g * 0)
        loss = net(torch.ones(1, 3)).sum()
        loss.backward()
        return net, loss

    timeline = timeline_of(program)
    options = ExportOptions(part=Part(level="modules"), note=lambda _: None)
    drawn = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), options, fits=True))
    (box,) = (box for box in drawn.boxes if "Linear" in box.title or "linear" in box.title)
    assert any("hook <lambda>" in row.text for row in box.rows)
    assert "changed" in box.tooltip


def residual():
    x = torch.ones(2, 3, requires_grad=True)
    h = x * 2
    for _ in range(2):
        h = h + torch.sin(torch.exp(h))
    loss = h.sum()
    loss.backward()
    return x, h, loss


def test_a_residual_stream_is_one_column():
    drawn = picture(residual)
    found = spine(drawn)
    titles = {box.key: box.op.lower() for box in drawn.boxes}
    assert sorted(titles[key] for key in found.stream) == ["add", "add", "mul"]
    laid_out = json.loads(draw(dot(drawn, Manner(direction="TB")), "json"))
    across = {each["name"]: float(each["pos"].split(",")[0]) for each in laid_out["objects"] if "pos" in each}
    stream = {round(across[key]) for key in found.stream}
    assert len(stream) == 1
    assert all(abs(across[key] - stream.copy().pop()) > 20 for key, op in titles.items() if op in ("sin", "exp"))
    plain = spine(picture(product_and_sine))
    assert not plain.stream
    assert "newrank" not in dot(picture(product_and_sine))


def test_the_legend_is_a_table_of_signs_and_meanings():
    text = dot(picture(hooked))
    signs = text[: text.index("node [")]
    assert "round: leaf" not in signs
    assert re.search(r'bgcolor="#e3eefc"></td></tr></table></td><td align="left">&#160;<font [^>]*>leaf<', signs)
    assert re.search(r">━○▶</font></td>", signs)
    assert re.search(r">done</font></td><td [^>]*>&#160;<font [^>]*>backward has finished here<", signs)


def test_a_legend_with_every_sign_can_be_drawn():
    signs = [text for _, text in SIGNS] + [f"{shown.look}, {shown.word}: {shown.meaning}" for shown in SHOWN]
    label = f"digraph {{ label={table(legend_rows(signs, LIGHT, 400))} a }}"
    assert json.loads(draw(label, "json"))["bb"]


def test_a_legend_that_flows_has_few_lines_that_fit_and_every_sign():
    signs = [text for _, text in SIGNS]
    rows = [*legend_rows(signs, LIGHT, 900, flows=True)]
    assert len(rows) < len(next(legend_rows(signs, LIGHT, 900)).split("<tr>")) / 2
    assert sum(row.count("<font") for row in rows) == sum(row.count("<font") for row in legend_rows(signs, LIGHT, 900))
    widths = [json.loads(draw(f"digraph {{ label={table([row])} a }}", "json"))["bb"].split(",")[2] for row in rows]
    assert all(float(width) < 950 for width in widths)


def test_every_swatch_of_the_table_is_for_a_look_that_the_legend_names():
    named = {look for _, text in SIGNS for look in text.partition(": ")[0].split(", ")}
    named |= {look for shown in SHOWN for look in shown.look.split(", ")}
    assert {*BOXES, *LINES} <= named


def rounded():
    x = torch.tensor([1.5, 2.25], requires_grad=True)
    z = (x * x + x * 5.77 + torch.exp(x) + torch.sin(x) + torch.tanh(x) + torch.sqrt(x)).sum()
    z.backward()
    return x, z


def test_a_total_reads_the_same_in_every_box_of_a_leaf():
    drawn = picture(rounded)
    totals = {
        row.text for box in drawn.boxes if box.role in ("leaf", "chip") for row in box.rows
        if row.label in ("total", "incoming", ".grad")
    }  # fmt: skip
    assert len(totals) == 1
    lines = {edge.text.removeprefix("+= ") for edge in drawn.edges if edge.kind == "gradient"}
    adds = {row.text for box in drawn.boxes for row in box.rows if row.label == "adds"}
    assert adds
    assert adds <= lines


def written():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    first = y + 0
    y.add_(10)
    y.mul_(3)
    total = (y + first).sum()
    total.backward()
    return x, y, first, total


def values_of(scene):
    return {box.op.lower(): row.text for box in scene.boxes for row in box.rows if row.label.startswith("value")}


def test_each_version_of_a_tensor_that_is_written_in_place_shows_its_own_value():
    drawn = picture(written)
    found = values_of(drawn)
    assert (found["add_"], found["mul_"]) == ("[12 14]", "[36 42]")
    labels = {box.op.lower(): row.label for box in drawn.boxes for row in box.rows if row.label.startswith("value")}
    assert (labels["add_"], labels["mul_"]) == ("value v1", "value v2")
    (made,) = (box for box in drawn.boxes if box.op.lower() == "mul")
    assert [row.text for row in made.rows if row.label == "value v0"] == ["[2 4]"]
    timeline = timeline_of(written)
    now = moment_scene(timeline, last_moment(timeline), Options())  # the debugger shows what is in memory
    assert values_of(now)["add_"] == "[36 42]"


def test_a_write_through_a_view_shows_the_whole_new_version_in_its_own_box():
    found = values_of(picture(written_through_a_view))
    assert (found["mul"], found["mul_"]) == ("[2 4 6]", "[2 12 18]")
    assert found["slice"] == "[12 18]"  # no other box shows this part


def test_a_cut_in_a_collapsed_module_is_named_with_its_line():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.inner(x).detach() * torch.ones(3, requires_grad=True)

    def program():
        net = torch.nn.Sequential(Net(), torch.nn.Linear(3, 3))
        loss = net(torch.ones(1, 3)).sum()
        loss.backward()
        return net, loss

    timeline = timeline_of(program)
    options = ExportOptions(part=Part(level="modules"), note=lambda _: None)
    drawn = moment_scene(timeline, len(timeline), drawing(timeline, len(timeline), options, fits=True))
    (box,) = (box for box in drawn.boxes if "Net" in box.title)
    assert any(re.fullmatch(r"cut by detach at test_lines\.py:\d+", row.text) for row in box.rows)


def test_many_lines_between_a_collapsed_box_and_another_are_one_that_says_how_many():
    def steps():
        w = torch.ones(3, requires_grad=True)
        torch.stack([(w * number).sum() for number in range(200)]).mean().backward()

    timeline = timeline_of(steps)
    options = drawing(timeline, last_moment(timeline), ExportOptions(), fits=True)
    drawn = moment_scene(timeline, last_moment(timeline), options)
    group = next(box.key for box in drawn.boxes if "×200" in box.title)
    assert [(edge.kind, edge.label) for edge in drawn.edges if edge.source == group and edge.kind != "gradient"] == [
        ("forward", "×200")
    ]
    assert len(drawn.edges) == 2 * (len(drawn.boxes) - 1)
    (gradient,) = (edge for edge in drawn.edges if edge.source == group and edge.kind == "gradient")
    assert gradient.states


def test_a_line_through_nodes_that_are_left_out_says_so_where_other_labels_are_not_drawn():
    def program():
        ids = torch.arange(6)
        mask = (ids != 0).reshape(2, 3).float()
        w = torch.ones(2, 3, requires_grad=True)
        (w * mask).sum().backward()

    timeline = timeline_of(program)
    for compact in (False, True):
        options = drawing(timeline, last_moment(timeline), ExportOptions(), fits=True)
        drawn = moment_scene(timeline, last_moment(timeline), replace(options, content="followed", compact=compact))
        assert drawn.labels_lines is not compact
        (line,) = (edge for edge in drawn.edges if edge.label == "…")
        (written,) = (row for row in dot(drawn).splitlines() if re.match(rf"\s*{line.source} -> {line.target}\b", row))
        assert ">…</font>" in written
        assert "leads through nodes that are left out" in " ".join(legend(drawn))
        assert "(2,3)" not in dot(drawn).partition(f"{line.source} -> ")[2].partition("]")[0]


def test_a_line_through_a_module_that_is_left_out_names_it_and_starts_at_its_input():
    def program():
        policy, teacher = torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
        for _ in range(2):
            start = torch.randn(4, 2)
            with torch.no_grad():
                data = policy(start).sign() + 1
                goal = teacher(policy(data)).exp()
            ((policy(data) - goal) ** 2).sum().backward()

    timeline = timeline_of(program)
    options = drawing(timeline, last_moment(timeline), ExportOptions(), fits=True)
    for closed in (True, False):
        drawn = moment_scene(
            timeline, last_moment(timeline), replace(options, content="followed", graph_filter=Filter(repeats=closed))
        )
        names = {box.key: box.title.split(" #")[0] for box in drawn.boxes}
        through = {(names[one.source], one.label, names[one.target]) for one in drawn.edges if one.label[:1] == "…"}
        assert through == {("start", "… policy", "data = add"), ("data = add", "…", "goal = exp")}
        assert not [name for name in names.values() if name.startswith("teacher")]


def test_what_only_a_module_that_is_left_out_has_made_is_drawn():
    def program():
        generator, w = torch.nn.Linear(3, 3), torch.ones(3, requires_grad=True)
        for _ in range(2):
            with torch.no_grad():
                noise = generator(generator.weight).tanh()
            (noise * w).sum().backward()

    timeline = timeline_of(program)
    options = drawing(timeline, last_moment(timeline), ExportOptions(), fits=True)
    drawn = moment_scene(timeline, last_moment(timeline), replace(options, content="followed"))
    names = {box.key: box.title.split(" #")[0] for box in drawn.boxes}
    assert {(names[one.source], one.label) for one in drawn.edges if one.label[:1] == "…"} == {
        ("weight param", "… Linear"),
        ("bias param", "… Linear"),
    }


def through(program, **options):
    """The lines through nodes that are left out: the names of their ends, and their labels."""
    timeline = timeline_of(program)
    chosen = drawing(timeline, last_moment(timeline), ExportOptions(), fits=True)
    drawn = moment_scene(timeline, last_moment(timeline), replace(chosen, content="followed", **options))
    names = {box.key: box.title.split(" #")[0] for box in drawn.boxes}
    return {(names[one.source], one.label, names[one.target]) for one in drawn.edges if one.label[:1] == "…"}


def test_a_collapsed_module_is_no_source_of_data_that_an_earlier_call_of_it_made():
    def program():
        policy = torch.nn.Sequential(torch.nn.Linear(2, 2))
        for _ in range(2):
            with torch.no_grad():
                data = (policy[0].weight * 2).sign()
                data = data + 1
            policy(data).sum().backward()

    closed = through(program, graph_filter=Filter(frozenset({"policy.0"})))
    assert not [line for line in closed if "Linear" in line[0]]
    assert ("0.weight param", "…", "data = add") in through(program, graph_filter=Filter())


def test_a_line_inside_of_a_module_does_not_name_it():
    class Quantizer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("codes", torch.ones(2, 3))

        def forward(self, x):
            with torch.no_grad():
                scaled = (self.codes * 2).abs().exp()
            return x * scaled

    def program():
        quantizer, w = Quantizer(), torch.ones(2, 3, requires_grad=True)
        for _ in range(2):
            quantizer(w).sum().backward()

    assert through(program, graph_filter=Filter()) == {("codes const", "…", "scaled = exp")}


def test_a_buffer_of_a_module_that_is_left_out_is_no_source_next_to_its_input():
    class Normalizer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.ones(3))

        def forward(self, x):
            return (x - self.mean).abs()

    def program():
        normalizer, w = torch.nn.Sequential(Normalizer()), torch.ones(3, requires_grad=True)
        for _ in range(2):
            x = torch.randn(2, 3)
            with torch.no_grad():
                y = normalizer(x).exp()
            (y * w).sum().backward()

    assert through(program, graph_filter=Filter()) == {("x const", "… Sequential", "y = exp")}

"""Operations with several outputs: each is told by its name, its number and its gradient, wherever it is met."""

import pytest
from explain.programs import recorded

from gviz.explain.event_description import sentence
from gviz.explain.typed_question import answers
from gviz.tui.drawing.node_details import plain_panel
from gviz.tui.drawing.tape import plain_tape

on_both_engines = pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])


def taken_apart(engine):
    return recorded("outputs", "taken_apart", engine)


@on_both_engines
def test_sentences_tell_every_output_by_its_name(engine):
    timeline = taken_apart(engine)
    told = "\n".join(sentence(timeline, n, since=n - 1) for n in range(1, len(timeline) + 1))
    assert "x cut along dim 0 = p [0 1 2 3], q [4 5], with x (6,)." in told
    assert "split: q is [1] of what the call gave." in told
    assert "[4 5] (q) * 3 = [12 15]." in told
    assert "sends [3 3] to q of #2 p, q = split." in told
    assert "its gradient is complete, p [2 2 2 2], q [3 3], and its rule runs." in told


@on_both_engines
def test_an_output_without_a_name_is_told_by_its_number(engine):
    timeline = taken_apart(engine)
    told = "\n".join(sentence(timeline, n, since=n - 1) for n in range(1, len(timeline) + 1))
    assert "first [0 1 2], [3 4 5], with x (6,)." in told
    assert "its gradient is complete, first [1 1 1], output 1 None, and its rule runs." in told


@on_both_engines
def test_the_node_panel_names_each_output_and_each_gradient(engine):
    timeline = taken_apart(engine)
    user = next(node for node in timeline.nodes if [2, 1] in map(list, timeline.info(node).created.inputs))
    rows, of_user = (list(plain_panel(timeline, len(timeline), node, 100)) for node in (2, user))
    assert [row for row in rows if row.startswith(("value", "incoming"))] == [
        "value 0 p  [0 1 2 3]  float32 (4,)",
        "value 1 q  [4 5]  float32 (2,)",
        "incoming 0 p  [2 2 2 2]",
        "incoming 1 q  [3 3]",
    ]
    assert "with   #2 q  [4 5]" in of_user
    at = of_user.index("to #2 q: g * 3 = [1 1] * 3")
    assert of_user[at + 1].strip() == "outgoing [3 3]"


@on_both_engines
def test_the_tape_has_a_row_for_each_output(engine):
    timeline = taken_apart(engine)
    rows = [" ".join(row.split()) for row in plain_tape(timeline, len(timeline), 100)]
    at = next(at for at, row in enumerate(rows) if "p, q = split" in row)
    assert rows[at].startswith("2 p, q = split 1 [0 1 2 3] [2 2 2 2]")
    assert rows[at + 1] == "q [4 5] [3 3]"
    assert len(rows) == 1 + len(timeline.nodes) + 2
    assert any(row.startswith("output 1 [3 4 5]") for row in rows)


@on_both_engines
def test_what_arrives_at_an_output_is_said_in_its_row(engine):
    timeline = taken_apart(engine)
    n = next(n for n in range(len(timeline)) if "to q of" in sentence(timeline, n, since=n - 1))
    rows = list(plain_tape(timeline, n, 100))
    (arriving,) = [row for row in rows if "in [3 3]" in row]
    assert arriving.split()[0] == "q"


@on_both_engines
@pytest.mark.parametrize(("used", "held"), [(0, "= [1 2]"), (1, "= [1 2]"), (2, "= [3 4]")])
def test_a_name_that_a_loop_gives_again_and_again_is_of_the_output_used_last(engine, used, held):
    timeline = recorded("outputs", "row_by_row", engine)
    rows, *later = [node for node in timeline.nodes if timeline.info(node).op.name.lower() in ("unbind", "mul")]
    n = timeline.info([rows, *later][used]).born
    (found,) = answers(timeline, "row", n)
    assert held in found.text

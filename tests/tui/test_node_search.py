"""The search for a node: this iteration first, then later ones, by whole names or parts of them."""

from driving import after, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.tui import node_search


def three_iterations():
    w = torch.tensor([2.0, -1.0], requires_grad=True)
    for _ in range(3):
        hidden = torch.nn.functional.leaky_relu(w * 3)
        loss = torch.relu(hidden).sum()
        loss.backward()


def searched(*commands, at="end"):
    return transcript(timeline_of(three_iterations), f"goto {at}", *commands).split("(gviz) ")[2:]


def test_a_search_begins_in_this_iteration_and_goes_on_to_others_by_name():
    first, repeated, last = searched("find relu", "find relu", "find relu")
    assert "match 3 of 3 (3 more with /*relu*)\nselected node #15 relu" in first
    assert "match 1 of 3 (3 more with /*relu*), in iteration 1; the graph shows iteration 3" in repeated
    assert "selected node #5 relu" in repeated
    assert "in iteration 2; the graph shows iteration 3" in last
    (earlier,) = searched("find relu", at="iteration 2")
    assert "match 2 of 3 (3 more with /*relu*)\nselected node #10 relu" in earlier


def test_a_leaf_of_all_iterations_is_in_this_one():
    assert "match 1 of 1\nselected node #1 w" in searched("find w")[0]


def test_parts_of_names_are_found_by_a_pattern_or_without_a_whole_name():
    for text in ("*relu*", "elu"):
        assert "match 5 of 6\nselected node #14 hidden = leaky_relu" in searched(f"find {text}")[0]
    assert "no node matches nosuch" in searched("find nosuch")[0]


async def test_the_keys_of_the_search_name_the_match():
    timeline = timeline_of(three_iterations)
    screen = await after(timeline, "slash", *"leaky", "enter", "comma", at=len(timeline))
    assert screen.remark == "match 1 of 3, in iteration 1; the graph shows iteration 3"
    screen = await after(timeline, "slash", *"leaky", "enter", "full_stop", at=len(timeline))
    assert screen.remark == "match 2 of 3, in iteration 2; the graph shows iteration 3"


def test_in_a_large_recording_matches_are_not_counted(monkeypatch):
    monkeypatch.setattr(node_search, "MOST_COUNTED", 5)
    assert searched("find relu")[0].splitlines()[1:] == ["selected node #15 relu; still at event 81."]

"""Much work is not searched for garbage, nor afterwards what is there to stay."""

import gc
import weakref

import pytest

import gviz
from gviz.system import gc_pause as this
from gviz.system.gc_pause import Rest, seldom_in_full, uncollected


def test_nothing_is_searched_meanwhile_and_all_of_it_is_old_afterwards():
    with uncollected(lasting=True):
        assert not gc.isenabled()
        made = [[]]
    assert gc.isenabled()
    assert any(one is made for one in gc.get_objects(generation=2))


def test_what_does_not_last_is_searched_afterwards():
    with uncollected():
        assert not gc.isenabled()
        made = [[]]
    assert gc.isenabled()
    assert not any(one is made for one in gc.get_objects(generation=2))


def test_a_failed_import_leaves_the_collector_at_work():
    with pytest.raises(ImportError), uncollected(lasting=True):
        raise ImportError
    assert gc.isenabled()


def test_what_the_program_has_set_aside_stays_there():
    gc.freeze()
    try:
        with uncollected(lasting=True):
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


@pytest.fixture
def rest(monkeypatch):
    monkeypatch.setattr(this, "_RESTS", float("inf"))  # a loaded machine never rests
    gc.collect()
    rest = Rest()
    yield rest
    rest.over()


def test_at_rest_all_is_searched_and_what_is_left_set_aside(rest):
    circle = []
    circle.append(circle)
    known = weakref.ref(made := type("Made", (), {}))
    gc.collect()  # both are old now
    del made
    gc.collect(1)
    rest.look()
    assert known() is None
    assert gc.get_freeze_count() > 1000
    assert not any(one is circle for one in gc.get_objects())
    rest.over()
    assert any(one is circle for one in gc.get_objects())
    circle.clear()


def test_nothing_is_searched_while_much_is_done(rest, monkeypatch):
    monkeypatch.setattr(this, "_RESTS", 0.0)
    gc.collect(1)
    rest.look()
    assert not gc.get_freeze_count()


def test_afterwards_it_is_searched_as_often_as_before():
    before = gc.get_threshold()
    rest = Rest()
    assert gc.get_threshold()[2] > before[2]
    rest.over()
    assert gc.get_threshold() == before


def test_at_rest_nothing_is_set_aside_where_the_program_has():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        rest = Rest()
        rest.over()
        assert gc.get_freeze_count() >= count > 0
    finally:
        gc.unfreeze()


def test_a_recording_makes_full_collections_rarer_until_it_ends(tmp_path):
    before = gc.get_threshold()
    with gviz.record(tmp_path / "run.gviz"):
        assert gc.get_threshold() == (*before[:2], 100 * before[2])
        with seldom_in_full():
            assert gc.get_threshold() == (*before[:2], 100 * before[2])
    assert gc.get_threshold() == before


def test_a_program_keeps_the_thresholds_that_it_sets_while_it_is_recorded(tmp_path):
    before = gc.get_threshold()
    try:
        with gviz.record(tmp_path / "run.gviz"):
            gc.set_threshold(500, 5, 5)
        assert gc.get_threshold() == (500, 5, 5)
    finally:
        gc.set_threshold(*before)


@pytest.mark.torch
def test_full_collections_are_rarer_while_pytorch_is_recorded_but_not_within_a_budget(tmp_path):
    torch = pytest.importorskip("torch")
    before = gc.get_threshold()
    with gviz.record(tmp_path / "run.gviz") as recording:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
        assert gc.get_threshold() == (*before[:2], 100 * before[2])
    assert "torch" in recording.framework
    with gviz.attach(torch.nn.Linear(2, 1), tmp_path / "budget.gviz", budget=0.05):
        assert gc.get_threshold() == before
    assert gc.get_threshold() == before

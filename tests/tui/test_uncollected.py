"""Imports for the first frame are not searched for garbage."""

import gc

import pytest

from gviz.tui.uncollected import uncollected


def test_nothing_is_searched_meanwhile_and_all_of_it_is_old_afterwards():
    with uncollected():
        assert not gc.isenabled()
        made = [[]]
    assert gc.isenabled()
    assert any(one is made for one in gc.get_objects(generation=2))


def test_a_failed_import_leaves_the_collector_at_work():
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()


def test_what_the_program_has_set_aside_stays_there():
    gc.freeze()
    try:
        with uncollected():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()

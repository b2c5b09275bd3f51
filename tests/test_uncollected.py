"""Much work is not searched for garbage, nor afterwards what is there to stay."""

import gc

import pytest

from gviz.uncollected import uncollected


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

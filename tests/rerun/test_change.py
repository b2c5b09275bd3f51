"""Changes as people write them."""

import numpy as np
import pytest

from gviz.errors import GvizError
from gviz.rerun.change_parser import Change, parse_change


def written(text):
    outputs = {"x": (1, 0), "net.fc.weight": (2, 0), "#3": (3, 0), "net[0].weight": (4, 0), "parts[1]": (5, 1)}
    return parse_change(text, outputs.__getitem__, outputs.__contains__)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("x = 5", Change(1, 5)),
        ("x=-5", Change(1, -5)),
        ("x = 1e400", Change(1, float("inf"))),
        ("x = -inf", Change(1, float("-inf"))),
        ("x = [True, [1.5, +2]]", None),
        ("x = [[1, 2], [3, -inf]]", Change(1, [[1, 2], [3, float("-inf")]])),
        ("net.fc.weight[0, -1] = 0", Change(2, 0, (0, -1))),
        ("x[...,1:, ::2] = 0", Change(1, 0, (..., slice(1, None), slice(None, None, 2)))),
        ("#3 = 1", Change(3, 1)),
        ("grad x = 2", Change(1, 2, of_gradient=True)),
        ("x.grad[1] = 2", Change(1, 2, (1,), of_gradient=True)),
        ("net[0].weight = 1", Change(4, 1)),
        ("net[0].weight[2] = 1", Change(4, 1, (2,))),
        ("parts[1] = 1", Change(5, 1, output_nr=1)),
        ("grad parts[1][0, 2] = 1", Change(5, 1, (0, 2), of_gradient=True, output_nr=1)),
        ("parts[1].grad[0] = 1", Change(5, 1, (0,), of_gradient=True, output_nr=1)),
    ],
)
def test_changes(text, change):
    if change is None:
        with pytest.raises(GvizError, match="is not a number or a list of numbers"):
            written(text)
    else:
        assert written(text) == change


def test_not_a_number_is_a_number():
    assert np.isnan(written("x = nan").numbers)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x 5", "x 5 changes nothing"),
        ("", "an empty text changes nothing"),
        ("x == 5", "x == 5 changes nothing"),
        ("x = __import__('os')", "__import__('os') is not a number or a list of numbers"),
        ("x[a] = 1", "[a] is not an index"),
        ("x[] = 1", "[] is not an index"),
        ("x[1.5] = 1", "[1.5] is not an index"),
        ("x = 'a'", "'a' is not a number or a list of numbers"),
        ("x = ", "nothing is not a number or a list of numbers"),
        ("x = 1if", "1if is not a number or a list of numbers"),
        (f"x = {'[' * 500}", f"{'[' * 39}… is not a number or a list of numbers"),
        ("= 5", "= 5 changes nothing"),
    ],
)
def test_changes_that_say_nothing(text, what):
    with pytest.raises(GvizError) as raised:
        written(text)
    assert raised.value.what == what


@pytest.mark.parametrize(
    ("change", "array", "why"),
    [
        (Change(1, [1, 2, 3]), np.zeros(2), "the tensor has shape (2,): could not broadcast"),
        (Change(1, 1, (5,)), np.zeros(2), "the tensor has shape (2,): index 5 is out of bounds"),
        (Change(1, 1.5), np.zeros(2, np.int64), "the tensor holds int64"),
        (Change(1, -1), np.zeros(2, np.uint8), "the tensor holds uint8"),
        (Change(1, 10**30), np.zeros(2, np.int64), "the tensor holds int64"),
        (Change(1, 3), np.zeros(2, np.bool_), "the tensor holds bool"),
    ],
)
def test_changes_that_do_not_fit(change, array, why):
    with pytest.raises(GvizError, match="does not fit") as raised:
        change.applied(array)
    assert raised.value.why.startswith(why)


def test_what_fits_is_put_in_a_copy():
    array = np.zeros((2, 2), np.float32)
    assert Change(1, 1e300, (slice(None), 1)).applied(array).tolist() == [[0, float("inf")], [0, float("inf")]]
    assert Change(1, 2.0).applied(np.zeros(2, np.int64)).tolist() == [2, 2]
    assert not array.any()

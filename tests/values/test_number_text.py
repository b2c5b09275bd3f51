"""How numbers and values are written: the same everywhere."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gviz.values import number_text, value_text
from gviz.values.value import Value, capture


def value(data, dtype="float64"):
    return capture(np.asarray(data, dtype=dtype))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (3, "3"),
        (3.0, "3"),
        (-18.0, "-18"),
        (21.84, "21.84"),
        (1 / 3, "0.3333"),
        (1e-8, "1e-08"),
        (1234567.0, "1.235e+06"),
        (123456.0, "123456"),
        (0.0, "0"),
        (-0.0, "-0"),
        (5e-324, "4.941e-324"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float32(0.1), "0.1"),
        (1 + 2j, "1+2j"),
        (1 - 2j, "1-2j"),
        (np.complex64(3 - 4j), "3-4j"),
        (np.complex128(-1j), "-0-1j"),
        (complex(math.nan, -math.nan), "nan+nanj"),
        (complex(0, -math.inf), "0-infj"),
        (10**400, "1.000e+400"),
        (-(10**400), "-1.000e+400"),
        (np.bool_(True), "True"),
        (np.int64(-7), "-7"),
    ],
)
def test_a_number_has_four_significant_digits(x, text):
    assert number_text.number(x) == text


@given(st.floats(-1e308, 1e308), st.integers(2, 4))
def test_a_number_reads_back_close_and_never_turns_to_zero(x, digits):
    back = float(number_text.number(x, digits))
    assert (back == 0) == (x == 0)
    assert math.copysign(1, back) == math.copysign(1, x)
    assert math.isclose(back, x, rel_tol=0.5 * 10 ** (1 - digits) * 1.001, abs_tol=5e-324)


@given(st.floats(), st.sampled_from(["float16", "float32", "float64"]))
def test_the_exact_form_reads_back_unchanged(x, dtype):
    with np.errstate(over="ignore"):
        x = np.dtype(dtype).type(x)
    assert np.dtype(dtype).type(number_text.exact(x)).tobytes() == x.tobytes() or np.isnan(x)


@pytest.mark.parametrize(("shape", "text"), [((), "()"), ((3,), "(3,)"), ((8, 3), "(8,3)"), ((0, 2), "(0,2)")])
def test_shapes(shape, text):
    assert number_text.shape_text(shape) == text


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float32", "f32"),
        ("int64", "i64"),
        ("uint8", "u8"),
        ("bool", "bool"),
        ("bfloat16", "bf16"),
        ("complex64", "c64"),
        ("float8_e4m3fn", "float8_e4m3fn"),
        ("float32 sparse", "f32 sparse"),
    ],
)
def test_dtypes(dtype, text):
    assert number_text.dtype_text(dtype) == text


def test_the_default_dtype_is_not_said():
    assert value_text.kind_text(Value("float32", (8, 3))) == "(8,3)"
    assert value_text.kind_text(Value("float64", (8, 3))) == "(8,3) f64"


def test_scalars_and_few_elements_are_written_in_full():
    assert value_text.short(value(-18.0)) == "-18"
    assert value_text.short(value([[2.5]])) == "2.5"
    assert value_text.short(value([1, 2.5, 3])) == "[1 2.5 3]"
    assert value_text.short(value(np.eye(2))) == "[[1 0] [0 1]]"
    assert value_text.short(value([True, False], "bool")) == "[True False]"


def test_larger_tensors_are_summarised():
    ramp = value(np.arange(24).reshape(8, 3), "float32")
    assert value_text.short(ramp) == "(8,3) [0 .. 23] μ 11.5 rms 13.4"
    assert value_text.grad(ramp) == "(8,3) [0 .. 23] μ 11.5 rms 13.4 |g| 65.8"
    assert value_text.share(ramp) == "|g| 65.8"
    assert value_text.short(value(np.zeros((0, 3)))) == "(0,3) f64 empty"
    assert value_text.short(value([True] * 6 + [False] * 10, "bool")) == "(16,) bool 38% true"


def test_bad_numbers_carry_a_mark_in_every_width():
    assert value_text.short(value(math.nan)) == "! nan"
    assert value_text.short(value([1, math.inf])) == "! [1 inf]"
    broken = value([1, 2, 3, 4, math.nan, -math.inf])
    assert value_text.short(broken) == "(6,) f64 [1 .. 4] μ 2.5 rms 2.74 ! 1 nan, 1 -inf"
    assert value_text.short(broken, 15) == "! 1 nan, 1 -inf"
    assert value_text.short(broken, 5) == "! nan"
    assert value_text.share(broken) == "! 1 nan, 1 -inf"
    assert value_text.grad(value([math.nan] * 6)) == "(6,) f64 ! 6 nan"


def test_mostly_zero_is_said():
    assert value_text.short(value([0] * 12 + [1])) == "(13,) f64 [0 .. 1] μ 0.0769 rms 0.277 92% zero"
    assert "zero" not in value_text.short(value([0, 0, 1, 1, 1]))


def test_where_room_is_short_the_range_outlives_the_mean_and_the_zeros():
    ramp = value([0, 0, 0, 0, 0, 1])
    assert value_text.short(ramp) == "[0 0 0 0 0 1]"
    widths = {value_text.short(ramp, width): width for width in range(50, 0, -1)}
    assert widths == {
        "(6,) f64 [0 .. 1] μ 0.167 rms 0.408 83% zero": 44, "(6,) f64 [0 .. 1] 83% zero": 26, "(6,) [0 .. 1]": 13,
        "(6,)": 4, "…": 1,
    }  # fmt: skip


def test_a_share_too_wide_for_its_elements_tells_its_length():
    column = value([[1.2345], [0], [1000.5], [0]])
    assert value_text.share(column, 14) == "|g| 1e+03"
    assert value_text.share(column) == "[[1.234] [0] [1000] [0]]"


def test_nothing_and_not_stored_are_said():
    assert value_text.short(None) == "·"
    assert value_text.short(Value("float32", (3, 4))) == "(3,4) not stored"
    assert value_text.grad(Value("float32", (3, 4))) == "(3,4) not stored"
    assert value_text.share(Value("float32", (3, 4))) == "(3,4) not stored"
    assert value_text.full(Value("float32", (3, 4))) == "float32 (3,4)  not stored"
    assert value_text.full(None) == "no value"


def test_full_is_exact():
    assert value_text.full(value(np.pi, "float32")) == "3.1415927  float32 ()"
    assert value_text.full(value(np.arange(6))) == "[0 1 2 3 4 5]  float64 (6,)"
    assert value_text.full(value(np.arange(13))) == "float64 (13,)  min 0  max 12  mean 6  rms 7.07107  104 B"


def test_a_sum_is_written_in_one_notation():
    small = value([[1, 2], [3, 4], [5, 6]], "float32")
    assert value_text.added(value(1.0), value(3.0), value(4.0)) == "1 += 3 -> 4"
    assert value_text.added(value(1.0), value(3.0)) == "1 += 3"
    assert value_text.added(small, small, value([[2, 4], [6, 8], [10, 12]], "float32")) == (
        "[[1 2] [3 4] [5 6]] += [[1 2] [3 4] [5 6]] -> [[2 4] [6 8] [10 12]]"
    )
    large = value(np.ones(16), "float32")
    assert value_text.added(large, large, large, gives=", now ") == "|g| 4 += |g| 4, now |g| 4 (lengths do not add)"
    assert value_text.added(large, large, large, 24) == "|g| 4 += |g| 4 -> |g| 4"
    assert value_text.added(large, large, large, 14) == "|g| 4 += |g| 4"
    assert value_text.added(large, large, large, 10) == "+= |g| 4"
    assert value_text.added(large, value([math.nan] * 16), large) == "|g| 4 += ! 16 nan -> |g| 4"


@given(st.sampled_from([(), (4,), (3, 2), (4, 4)]), st.one_of(st.none(), st.integers(1, 120)), st.data())
def test_a_sum_that_is_written_out_can_be_checked_and_is_never_of_two_kinds(shape, width, data):
    pair = [data.draw(st.lists(st.integers(-99, 99), min_size=(n := math.prod(shape)), max_size=n)) for _ in "ab"]
    old, part = (np.array(each, float).reshape(shape) for each in pair)
    text = value_text.added(value(old), value(part), value(old + part), width)
    assert width is None or len(text) <= width or text == "…"
    a, _, rest = text.removesuffix(value_text.LENGTHS).partition(" += ")
    b, _, total = rest.partition(" -> ")
    assert len({word.startswith("|g|") for word in (a, b, total) if word and " += " in text}) < 2
    if total and "|g|" not in text:
        read = [np.array(word.replace("[", " ").replace("]", " ").split(), float) for word in (a, b, total)]
        np.testing.assert_allclose(read[0] + read[1], read[2], atol=5)


SHAPES = st.sampled_from([(), (1,), (3,), (2, 2), (5,), (8, 3), (0,)])


@given(SHAPES, st.integers(1, 60), st.data())
def test_a_cut_text_fits_and_is_never_a_cut_number(shape, width, data):
    size = math.prod(shape)
    elements = data.draw(st.lists(st.floats(width=32), min_size=size, max_size=size))
    shown = value(elements, "float32")
    shown = capture(shown.array().reshape(shape))
    for write in (value_text.short, value_text.grad, value_text.share):
        text = write(shown, width)
        assert len(text) <= width
        for word in text.replace("[", " ").replace("]", " ").split():
            assert word == "…" or "…" not in word


@given(st.floats(-1e308, 1e308), st.integers(1, 20))
def test_a_narrow_scalar_is_the_number_or_nothing(x, width):
    text = value_text.short(value(x), width)
    assert text == "…" or math.isclose(float(text), x, rel_tol=0.051, abs_tol=5e-324)


def test_bytes_and_times():
    sizes = (0, 192, 2**20 - 1, 3_500_000, 2**40)
    assert [number_text.bytes_text(n) for n in sizes] == ["0 B", "192 B", "1 MiB", "3.34 MiB", "1 TiB"]
    assert [number_text.seconds_text(s) for s in (12e-6, 3.4e-3, 0.1234, 1.2, 250)] == [
        "12 µs", "3.4 ms", "123 ms", "1.2 s", "250 s",
    ]  # fmt: skip


def test_a_few_elements_without_room_are_a_range_and_what_is_bad_is_said():
    few = value([[1.25, -2.5], [3.125, 4.0]], "float32")
    assert value_text.short(few) == "[[1.25 -2.5] [3.125 4]]"
    assert value_text.short(few, 18) == "(2,2) [-2.5 .. 4]"
    assert value_text.short(few, 8) == "(2,2)"
    assert value_text.short(value([[math.nan, -2.5], [3.125, 4.0]], "float32"), 8) == "! 1 nan"


def test_the_ends_of_a_range_are_in_the_digits_of_their_own_precision():
    array = np.linspace(-0.1, 0.3, 20, dtype=np.float32)
    least, most = map(str, (array.min(), array.max()))  # to format would widen them
    assert f"min {least}  max {most}" in value_text.full(capture(array))
    assert "min 0.1  max 0.3" in value_text.full(capture(np.linspace(0.1, 0.3, 20)))


def test_the_sign_of_an_infinity_is_said_where_its_element_is_kept():
    mixed = np.array([np.inf, -np.inf, -np.inf, np.nan], np.float32)
    assert value_text.bad_text(capture(mixed)) == "1 nan, 1 inf, 2 -inf"
    assert value_text.bad_text(capture(mixed, limit=0)) == "1 nan, 1 inf, 2 -inf"
    old = replace(capture(mixed, limit=0), stats=replace(capture(mixed, limit=0).stats, minus=-1))  # no signs are known
    assert value_text.bad_text(old) == "1 nan, 3 inf"
    assert value_text.bad_text(capture(np.full((2, 480), -math.inf), limit=0)) == "960 -inf"


def test_elements_are_written_in_their_own_precision():
    array = np.array([[0.1, 2], [-3e-9, np.inf]], np.float32)
    assert value_text.elements_text(array) == "[[0.1 2] [-3e-09 inf]]"
    assert value_text.elements_text(np.array([True, False])) == "[True False]"
    assert value_text.elements_text(np.zeros((2, 0))) == "[[] []]"

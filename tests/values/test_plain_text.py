"""Text from a program cannot do anything where it is shown."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gviz.values.plain_text import abridged, abridged_label, clipped, clipped_name, file_line, shown, without_beginning


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("x.grad", "x.grad"),
        ("Größe 重み 🙂 אבג", "Größe 重み 🙂 אבג"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("abc\u202edef", "abc\\u202edef"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\udc80", "\\udc80"),
        ("no\u00a0break", "no break"),
        ("\x00", "\\x00"),
        ("", ""),
    ],
)
def test_invisible_characters_become_visible(text, harmless):
    assert shown(text) == harmless


def test_lines_are_kept_on_request():
    assert shown("a\r\nb\x1bc\n", lines=True) == "a\nb\\x1bc\n"


def test_clipping_counts_the_visible_form():
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("abcdefg", 6) == "abcde…"
    assert clipped("\x1b\x1b", 5) == "\\x1b…"


@given(st.text(alphabet=st.characters(codec=None), max_size=40))
def test_nothing_unprintable_is_left(text):
    assert shown(text).isprintable()
    assert shown(text).encode("utf-8").decode("utf-8") == shown(text)
    assert all(line.isprintable() for line in shown(text, lines=True).split("\n"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/home/me/demo.py", "demo.py:4"),
        ("demo.py", "demo.py:4"),
        ("C:\\me\\demo.py", "demo.py:4"),
        ("/a\x1b[2J/de\x1b[2Jmo.py", "de\\x1b[2Jmo.py:4"),
        ("<string>", "<string>:4"),
    ],
)
def test_a_line_is_named_by_its_file_without_folders(path, text):
    assert file_line(path, 4) == text


@pytest.mark.parametrize("width", [3, 4, 20, 21])
def test_a_long_name_keeps_both_ends(width):
    text = "encoder.layers.11.attention.weight"
    short = abridged(text, width)
    assert len(short) <= width
    first, last = short.split("…")
    assert text.startswith(first)
    assert text.endswith(last)
    assert first
    assert last
    assert abridged(text, len(text)) == text
    assert abridged("a\x1b" * 50, 9) == "a\\x1…\\x1b"


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("discriminator.0.bias", 15, "discrim….0.bias"),
        ("discriminator.0.bias", 9, "d….0.bias"),
        ("g_loss_with_logits", 15, "g…_with_logits"),
        ("discriminator_loss", 11, "discr…_loss"),
        ("encoder.layers.11.attention.weight", 28, "encoder….11.attention.weight"),
        ("encoder.layers.11.attention.weight", 3, "e…t"),
        ("a_very_longsinglename", 9, "a_ve…name"),
    ],
)
def test_a_long_name_is_cut_where_its_parts_begin(name, width, short):
    assert abridged(name, width) == short


@example("#123456 discriminator.0.bias = convolution", 5)
@given(st.text("ab._ =#1é", max_size=60), st.integers(3, 40))
def test_a_label_fits_and_does_not_change_if_it_is_short(label, width):
    assert len(abridged_label(label, width)) <= width
    assert len(abridged(label, width)) <= width
    assert abridged_label(label, 60) == label


@pytest.mark.parametrize(
    ("label", "width", "short"),
    [
        ("#14 loss = mse_loss", 20, "#14 loss = mse_loss"),
        ("#14 loss = binary_cross_entropy_with_logits", 30, "#14 loss = binary…_with_logits"),
        ("#14 g_loss_with_logits = binary_cross_entropy", 24, "#14 g_loss_with_logits"),
        ("#3 scale_of_the_attention_block = log", 22, "#3 scale…_block = log"),
        ("#12 encoder.layers.11.attention.weight", 20, "#12 encoder….weight"),
    ],
)
def test_a_label_keeps_its_number_and_its_name(label, width, short):
    assert abridged_label(label, width) == short


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (42, "encoder.layers.0.attention.query.weight #5"),
        (41, "…layers.0.attention.query.weight #5"),
        (33, "…0.attention.query.weight #5"),
        (16, "…query.weight #5"),
        (5, "…query.weight #5"),
    ],
)
def test_what_tells_parameters_apart_stays(width, left):
    assert without_beginning("encoder.layers.0.attention.query.weight #5", width) == left
    assert without_beginning(left, width) == left


def test_a_name_that_is_no_path_loses_its_middle():
    assert clipped_name("encoder.layers.query.weight", 9) == "…weight"
    assert clipped_name("a_long_name.weight", 9) == "a….weight"
    assert without_beginning("a_long_name.weight", 9) == "a_long_name.weight"
    assert without_beginning("x.y.z.weight", 12, "...", lambda text: 2 * len(text)) == "...z.weight"

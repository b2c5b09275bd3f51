"""The form of a finding: a title below 80 characters, its source line, a line of numbers and a line of the fix."""

import pytest
from explain.programs import HERE

from benchmarks.answers import programs
from gviz.explain.display_names import MOST_TITLE, titled
from gviz.explain.finding import fix_of, lines, main_facts, short_lines
from gviz.explain.program_text import underlined

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
FOLDERS = ("bugs", "loops", "healthy", "updates", "outputs")
FILES = [(folder, path.stem) for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))]
TEXTS = programs("sick")
CHUNK = 15
WITHOUT_A_LINE = {"nan-born", "nan-seed"}
"""Kinds that may have no line: a number of an unknown origin, and one that backward was given."""


def misshapen(outcome):
    """What is wrong with the form of the findings of a program."""
    for one in outcome.found:
        finding = one.finding
        rows = [text for _, text, _ in short_lines(finding)]
        facts = main_facts(finding)
        if len(finding.text) > MOST_TITLE:
            yield f"{len(finding.text)} characters: {finding.text}"
        if any("\n" in text for _, text, _ in lines(finding)):
            yield f"a line break in {finding.text}"
        if len(facts) > 2 or len(rows) != 1 + len(facts) + bool(fix_of(finding)):
            yield f"{len(rows)} rows: {rows}"
        if finding.kind not in WITHOUT_A_LINE and not underlined(outcome, finding.at):
            yield f"no source line: {finding.text}"
        if len(facts) == 2 and facts[1].at is None:
            yield f"a second fact without a place: {facts[1].text}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", range(0, len(FILES), CHUNK))
def test_a_finding_has_a_title_and_few_lines(start, engine, checks):
    wrong = {
        name: list(misshapen(checks.of_file(folder, name, engine))) for folder, name in FILES[start : start + CHUNK]
    }
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.torch
@pytest.mark.parametrize("start", range(0, len(TEXTS), CHUNK))
def test_a_finding_of_the_benchmark_has_a_title_and_few_lines(start, checks):
    """What a finding says is written once for both engines, and a recurrent net takes minutes on the built-in one."""
    wrong = {one.name: list(misshapen(checks.of_text(one.text, "torch"))) for one in TEXTS[start : start + CHUNK]}
    assert {name: found for name, found in wrong.items() if found} == {}


LONG = "encoder.transformer.layers.11.self_attention.projections.query.weight"
OTHER = "encoder.transformer.layers.11.self_attention.projections.value.weight"


@pytest.mark.parametrize(
    "names",
    [("#1 w",), (f"#12 {LONG}",), (f"#12 {LONG}", f"#13 {OTHER}"), (f"#12 {LONG}", "#3 b", f"#1234567 {LONG}")],
)
def test_names_that_do_not_fit_lose_their_middles_and_stay_distinct(names):
    text = "{} takes " + " and ".join("{}" for _ in names[1:])
    title = titled(text, *names)
    assert len(title) <= MOST_TITLE
    assert all(name.split()[0] in title for name in names)
    whole = text.format(*names)
    assert title == whole if len(whole) <= MOST_TITLE else title.count("…") == sum("encoder" in name for name in names)


def test_names_without_numbers_stay_distinct():
    text = "the parameters {} and {} have equal gradients in all iterations"
    title = titled(text, LONG, LONG.replace("11", "12"))
    assert len(title) <= MOST_TITLE
    assert "11" in title
    assert "12" in title


def test_a_short_name_stays_whole_next_to_a_long_one():
    assert titled("{} was changed in place, but {} needs it", f"#1 {LONG}", "#2 out = mul").endswith(
        "#2 out = mul needs it"
    )


@pytest.mark.torch
def test_an_error_about_one_of_several_views_names_the_view_that_it_numbers(checks):
    text = """
import torch
x = torch.randn(4, 4, requires_grad=True) * 2
scale, moved = x.chunk(2, 1)
scale = scale.tanh()
moved *= scale.exp()
"""
    (one,) = checks.of_text(text, "torch").found
    assert "moved of #" in one.finding.text
    assert "chunk, cannot be changed in place" in one.finding.text

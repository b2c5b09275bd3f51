"""Every program of this folder on both engines: they give the same findings, on the same lines."""

import pytest
from explain.programs import HERE
from explain.test_silent_mistakes import HEAD, HEALTHY, MISTAKES, ONLY_TORCH

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FOLDERS = ("bugs", "loops", "healthy", "updates", "outputs")
PROGRAMS = [(folder, path.stem) for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))]
TEXTS = {**MISTAKES, **HEALTHY}
ONLY_PYTORCH = dict.fromkeys(sorted(ONLY_TORCH), "torch.amp.GradScaler")
"""The programs that the built-in engine cannot run, each with what it lacks."""


def findings(outcome):
    found = (one.finding for one in outcome.found)
    return sorted((one.kind, one.suspected, one.at.line if one.at else 0) for one in found)


@pytest.mark.parametrize(("folder", "name"), PROGRAMS)
def test_both_engines_give_the_same_findings(folder, name, checks):
    ours, theirs = (findings(checks.of_file(folder, name, engine)) for engine in ("builtin", "torch"))
    assert ours == theirs


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in ONLY_PYTORCH])
def test_both_engines_give_the_same_findings_for_a_text(name, checks):
    ours, theirs = (findings(checks.of_text(HEAD + TEXTS[name], engine)) for engine in ("builtin", "torch"))
    assert ours == theirs


@pytest.mark.parametrize("name", ONLY_PYTORCH)
def test_what_a_program_needs_is_lacking(name, checks):
    assert len(checks.of_text(HEAD + TEXTS[name], "builtin").errors) == 1


def test_every_folder_of_programs_is_among_them():
    assert {path.parent.name for path in HERE.glob("*/*.py")} == {*FOLDERS}

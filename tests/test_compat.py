"""The releases of PyTorch that are tested, wherever they are named, and what `make compat` says of them."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import compat  # beside this file

ROOT = Path(__file__).parents[1]


def test_the_page_has_a_row_for_every_release():
    rows = compat._BETWEEN.search((ROOT / "docs" / "pytorch.md").read_text()).group().splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:]] == list(compat.RELEASES)


def test_the_oldest_release_is_the_one_that_gviz_asks_for():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["torch"]
    assert wanted == ["torch>=" + compat.RELEASES[0].rpartition(".")[0]]


def test_what_must_pass_before_anything_lands_runs_on_releases_that_are_tested():
    named = re.findall(r"torch==([\d.]+)|compat\.py ([\d.]+)", (ROOT / ".ci" / "run").read_text())
    assert {one or other for one, other in named} <= set(compat.RELEASES)


def test_a_release_that_no_python_at_hand_has_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compat, "_pythons", lambda: iter(()))
    assert compat.main(["2.4.1", "--folder", str(tmp_path)]) == 3
    assert "| 2.4.1 | - | - | - | - | not tested: there is no Python of 3.11" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([(5, 0, "")], 0),
        ([(5, 0, ""), (5, 1, "")], 1),
        ([(5, 0, ""), (0, 0, "not tested: no disk")], 3),
        ([(5, 1, ""), (0, 0, "not tested: no disk")], 1),
        ([(0, 0, "")], 3),
    ],
)
def test_the_exit_code_says_whether_all_passed(outcomes, code, monkeypatch):
    made = iter(outcomes)

    def outcome(release, options):
        passed, failed, trouble = next(made)
        return compat.Outcome(release, "3.11", passed, failed, 0, (), trouble)

    monkeypatch.setattr(compat, "_outcome", outcome)
    assert compat.main([f"2.{number}.0" for number in range(len(outcomes))]) == code


def test_a_kept_environment_of_another_release_is_not_taken(tmp_path):
    assert not compat._answers(Path(sys.executable), "0.0.1")


def test_tests_that_were_interrupted_have_not_passed(tmp_path):
    """pytest writes a report all the same, of those that had passed by then."""
    folder = tmp_path / "2.13.0"
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    report = '<testsuite tests="3" failures="0" errors="0" skipped="0"/>'
    python.write_text(f"""#!/bin/sh
case "$*" in
  *pytest*) echo '{report}' > {folder}/report.xml; exit 2 ;;
  *sys.version_info*) echo 3.11 ;;
  *) echo '["2.13.0", []]' ;;
esac
""")
    python.chmod(0o755)
    with pytest.raises(compat.NotTested, match=r"did not run to their end \(exit code 2\)"):
        compat._tested("2.13.0", python, folder, [])

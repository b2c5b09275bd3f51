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
    assert [row.split("|")[1].strip().partition("+")[0] for row in rows[2:]] == list(compat.RELEASES)


def test_a_run_of_some_releases_replaces_their_rows_alone():
    def written(document, *outcomes):
        return compat._with_rows(document, [outcome.row() for outcome in outcomes])

    page = f"before\n<!-- make compat -->\n{compat._table(())}<!-- end -->\nafter\n"
    lost = compat.Outcome("2.10.0", trouble="not tested: no disk")
    first = compat.Outcome("2.13.0+cpu", "3.11", "2026-01-02", "all", 7, 1, 0, 2, ("a | b",))
    page = written(written(page, first, lost), compat.Outcome("2.8.0", "3.12", "2026-01-03", "tests/adapters", 5))
    assert page == (
        "before\n<!-- make compat -->\n"
        f"{compat._table(())}"
        "| 2.8.0 | 3.12 | tests/adapters, 2026-01-03 | 5 | 0 | 0 | nothing |\n"
        "| 2.10.0 | - | - | - | - | - | not tested: no disk |\n"
        "| 2.13.0+cpu | 3.11 | all, 2026-01-02 | 7 (1 at the second try) | 0 | 2 | a / b |\n"
        "<!-- end -->\nafter\n"
    )
    assert written(page, compat.Outcome("2.13.0", trouble="not tested: no disk")) == page
    page = written(page, compat.Outcome("2.10.0", "3.11", "2026-01-04", "all", 6))
    assert "| 2.10.0 | 3.11 | all, 2026-01-04 | 6 |" in page


def test_the_oldest_release_is_the_one_that_gviz_asks_for():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["torch"]
    assert wanted == ["torch>=" + compat.RELEASES[0].rpartition(".")[0]]


def test_what_must_pass_before_anything_lands_runs_on_releases_that_are_tested():
    named = re.findall(r"torch==([\d.]+)|compat\.py ([\d.]+)", (ROOT / ".ci" / "run").read_text())
    assert {one or other for one, other in named} <= set(compat.RELEASES)


def test_a_release_that_no_python_at_hand_has_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compat, "_pythons", lambda: iter(()))
    assert compat.main(["2.4.1", "--folder", str(tmp_path)]) == 3
    assert "| 2.4.1 | - | - | - | - | - | not tested: there is no Python of 3.11" in capsys.readouterr().out


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
        return compat.Outcome(release, "3.11", passed=passed, failed=failed, trouble=trouble)

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
        compat._tested("2.13.0", python, folder, compat._parser().parse_args([]))


def test_what_failed_runs_once_more_alone(tmp_path):
    folder = tmp_path / "2.13.0"
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f"""#!/bin/sh
report() {{ echo "<testsuite tests='$1' failures='$2' errors='$3' skipped='$4'/>" > {folder}/report.xml; exit 1; }}
case "$*" in
  *last-failed*) echo "$*" > {folder}/again; report 3 1 0 0 ;;
  *pytest*) report 9 2 1 2 ;;
  *sys.version_info*) echo 3.11 ;;
  *) echo '["2.13.0+cpu", ["shapes"]]' ;;
esac
""")
    python.chmod(0o755)
    outcome = compat._tested("2.13.0", python, folder, compat._parser().parse_args(["--tests", "tests/adapters"]))
    day = outcome.day
    assert outcome == compat.Outcome("2.13.0+cpu", "3.11", day, "tests/adapters", 6, 2, 1, 2, ("shapes",))
    assert " -n " not in (folder / "again").read_text()

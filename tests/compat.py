"""Runs the adapter's and the lessons' tests against every release of PyTorch that gviz promises to work with.

    make compat                                  # all of RELEASES, one environment at a time: 6 GB each on the disk
    make compat ARGS="2.4.1 2.8.0 --keep"        # some of them, and keep their environments for the next time

The builds without CUDA take 1 GB each: name PyTorch's index of them to pip (`PIP_EXTRA_INDEX_URL`).
Each release runs on the first Python at hand, the oldest that gviz supports first, for which it has a wheel. Tests that
failed run once more, alone: on a busy machine some fail by their time limit. The table at the end names releases that
could not be installed; ``--write`` puts its rows into docs/pytorch.md, in the place of those of the same releases, but
for one that was tested once and could not be this time. The exit code is 0 where every release passed, 1 where a test
failed, and 3 where none failed, but a release could not be tested.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RELEASES = ("2.4.1", "2.6.0", "2.8.0", "2.10.0", "2.11.0", "2.13.0", "2.14.1")
TESTS = ("tests/adapters", "tests/samples", "tests/integrations/test_pytest_plugin.py")
_FAILED, _NOT_TESTED = 1, 3
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""What gviz runs on, and wheels of PyTorch are looked for, in this order."""

_ROOT = Path(__file__).parents[1]
_DOCUMENT = _ROOT / "docs" / "pytorch.md"
_BETWEEN = re.compile(r"(?<=<!-- make compat -->\n).*?(?=<!-- end -->)", re.DOTALL)
_HEAD = ("PyTorch", "Python", "run", "passed", "failed", "not run", "what the release does not show")
_PASSED, _NOTHING = _HEAD.index("passed"), "-"
_LACKING = """
import json, torch
from gviz.adapters.pytorch import private_api
print(json.dumps([torch.__version__, sorted({*private_api.missing.values()})]))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one release: what was run on which day and the counts, or why there are none (`trouble`).

    `release` is that of the build (``2.13.0+cpu``) where there was one; of those that passed, `again` did so alone.
    """

    release: str
    python: str = ""
    day: str = ""
    what: str = ""
    passed: int = 0
    again: int = 0
    failed: int = 0
    skipped: int = 0
    lacking: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def is_good(self) -> bool:
        """Whether there were tests, and all of them passed."""
        return not self.trouble and not self.failed and self.passed > 0

    def row(self) -> tuple[str, ...]:
        """The release's row of the table."""
        if self.trouble:
            return (self.release, *(_NOTHING,) * 5, self.trouble)
        passed = f"{self.passed} ({self.again} at the second try)" if self.again else str(self.passed)
        counts = (passed, str(self.failed), str(self.skipped))
        return (self.release, self.python, f"{self.what}, {self.day}", *counts, "; ".join(self.lacking) or "nothing")


class NotTested(Exception):
    """A release that could not be installed, or whose tests did not end, and why."""


def main(arguments: Sequence[str]) -> int:
    """Test releases, print the table, and say by the exit code whether all of them passed."""
    options = _parser().parse_args(arguments)
    outcomes = []
    for number, release in enumerate(options.releases, 1):
        _say(f"PyTorch {release} ({number} of {len(options.releases)})")
        outcomes.append(_outcome(release, options))
        _say(f"PyTorch {release}: {_in_short(outcomes[-1])}")
    rows = [outcome.row() for outcome in outcomes]
    print(_table(rows), end="")
    if options.write:
        _DOCUMENT.write_text(_with_rows(_DOCUMENT.read_text(), rows))
    if all(outcome.is_good for outcome in outcomes):
        return 0
    return _FAILED if any(outcome.failed for outcome in outcomes) else _NOT_TESTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make compat", description="Test gviz against releases of PyTorch.")
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE", help="2.4.1 (all)")
    parser.add_argument("--keep", action="store_true", help="keep the environments for the next time")
    parser.add_argument("--folder", type=Path, default=_ROOT / ".compat", help="of the environments (.compat)")
    parser.add_argument("--install-limit", type=float, metavar="SECONDS", help="give up an installation after so long")
    parser.add_argument("--write", action="store_true", help="put the table into docs/pytorch.md")
    parser.add_argument("--workers", default="auto", metavar="N", help="of pytest (auto)")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="what to run instead")
    return parser


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def _outcome(release: str, options: argparse.Namespace) -> Outcome:
    folder = options.folder / release
    try:
        python = _installed(release, folder, options.install_limit)
        return _tested(release, python, folder, options)
    except NotTested as trouble:
        return Outcome(release, trouble=f"not tested: {trouble}")
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _installed(release: str, folder: Path, limit: float | None) -> Path:
    """The Python of an environment that has a release: the one that was kept, or a new one."""
    python = folder / "bin" / "python"
    if python.exists() and _answers(python, release):
        return python
    trouble = "there is no Python of " + ", ".join(PYTHONS)
    for base in _pythons():
        shutil.rmtree(folder, ignore_errors=True)
        _say(f"  installing on {_version(base)} ...")
        subprocess.run([base, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
        try:
            done = subprocess.run(
                [*pip, f"torch=={release}", "-e", f"{_ROOT}[test]"],
                stdout=sys.stderr,
                stderr=subprocess.PIPE,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            raise NotTested(f"the installation took more than {limit:.0f} s") from None
        if done.returncode == 0:
            return python
        trouble = next((line for line in done.stderr.splitlines() if line.startswith("ERROR: ")), "pip failed")
        if "No matching distribution" not in done.stderr:
            raise NotTested(trouble)
    raise NotTested(trouble)


def _pythons() -> Iterator[str]:
    """The interpreters at hand, the oldest version first, each version once."""
    for version in PYTHONS:
        of_pyenv = Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
        places = [shutil.which(f"python{version}"), *map(str, of_pyenv)]
        found = next((place for place in places if place is not None and _version(place) == version), None)
        if found is not None:
            yield found


def _version(python: str | Path) -> str:
    """``3.11``; empty where an interpreter does not start, as a shim without a version behind it."""
    text = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True)
    return done.stdout.strip()


def _answers(python: Path, release: str) -> bool:
    text = "import torch, gviz, pytest; print(torch.__version__)"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, env=_environment())
    return done.returncode == 0 and done.stdout.partition("+")[0].strip() == release


def _tested(release: str, python: Path, folder: Path, options: argparse.Namespace) -> Outcome:
    """Run the tests that need PyTorch: one that does not run for want of it has failed."""
    done = subprocess.run([python, "-c", _LACKING], capture_output=True, text=True, cwd=_ROOT, env=_environment())
    if done.returncode:
        raise NotTested(f"it does not start: {done.stderr.strip().splitlines()[-1]}")
    build, lacking = json.loads(done.stdout.splitlines()[-1])
    _say(f"  testing on {_version(python)} ...")
    shutil.rmtree(folder / "cache", ignore_errors=True)
    parallel = ["-n", options.workers, "--dist", "worksteal"]
    passed, failed, skipped = _counts(python, folder, [*parallel, *options.tests])
    again = 0
    if failed:
        _say(f"  {failed} failed: they run once more, alone ...")
        alone = ["--last-failed", "--last-failed-no-failures", "none"]
        again, failed, _ = _counts(python, folder, [*alone, *options.tests])
    what = "all" if options.tests == TESTS else _in_words(options.tests)
    day = time.strftime("%Y-%m-%d")
    return Outcome(build, _version(python), day, what, passed + again, again, failed, skipped, tuple(lacking))


def _in_words(tests: Sequence[str]) -> str:
    """Which tests were run: a few by their paths, many files of one folder by their number."""
    folders = {path.rpartition("/")[0] for path in tests}
    if len(tests) < 4 or len(folders) > 1:
        return ", ".join(tests)
    (folder,) = folders
    return f"{len(tests)} of the {len([*_ROOT.joinpath(folder).glob('test_*.py')])} files of {folder}"


def _counts(python: Path, folder: Path, arguments: Sequence[str]) -> tuple[int, int, int]:
    """How many tests passed, failed, and were not run."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-o", f"cache_dir={folder / 'cache'}", "-m", "torch"]
    done = subprocess.run([*command, f"--junit-xml={report}", *arguments], cwd=_ROOT, env=_environment(), text=True)
    if done.returncode not in (0, 1) or not report.exists():  # an interrupted run leaves a report, too
        raise NotTested(f"the tests did not run to their end (exit code {done.returncode})")
    suites = [{name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
              for suite in xml.parse(report).getroot().iter("testsuite")]  # fmt: skip
    failed, skipped = (sum(suite[name] for suite in suites for name in names)
                       for names in (("failures", "errors"), ("skipped",)))  # fmt: skip
    return sum(suite["tests"] for suite in suites) - failed - skipped, failed, skipped


def _environment() -> dict[str, str]:
    """That of the tests: a program that they start imports PyTorch, which takes 20 s where no bytecode is kept."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**usual, "GVIZ_REQUIRE_TORCH": "1"}


def _in_short(outcome: Outcome) -> str:
    counts = f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} not run"
    return outcome.trouble or counts


def _with_rows(document: str, rows: Sequence[Sequence[str]]) -> str:
    """The document with rows in the place of those of the same releases; a row says itself what was run, and when."""
    table = _BETWEEN.search(document)
    assert table is not None
    written = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table[0].splitlines()[2:]]
    by_release = {_numbers(row[0]): row for row in written}
    for row in rows:
        before = by_release.get(_numbers(row[0]))
        if row[_PASSED] != _NOTHING or before is None or before[_PASSED] == _NOTHING:
            by_release[_numbers(row[0])] = [*row]
    return document[: table.start()] + _table([by_release[it] for it in sorted(by_release)]) + document[table.end() :]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.partition("+")[0].split(".")))


def _table(rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    shown = [[cell.replace("|", "/") for cell in row] for row in (_HEAD, ("---",) * len(_HEAD), *rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in shown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The benchmarks run: what they measure is there, and answers. How fast it is nobody asserts."""

import subprocess
import sys
from pathlib import Path

from benchmarks.key_to_repaint import measured

ROOT = Path(__file__).parents[1]


def test_keys_that_step_are_answered_by_a_repaint():
    presses = measured(blocks=10, repeats=2)
    (_, first), (_, second) = presses["step"]
    (_, back), _ = presses["step back"]
    assert min(first, second, back) > 0


def test_a_table_has_a_row_for_each_case_with_its_ratio():
    command = [sys.executable, "-m", "benchmarks", "mlp"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    headings, row = done.stdout.splitlines()
    assert headings.split() == ["what", "gviz", "the", "alternative", "ratio", "goal"]
    assert row.startswith("MLP 2x256, batch 32, forward + backward ")
    assert row.endswith(" 1.3x")


def test_what_is_no_subject_is_refused_with_those_there_are():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "chian"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no subject chian; there are chain, ")

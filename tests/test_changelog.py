"""The changelog tells each change once, in one section."""

import re
from collections import Counter
from pathlib import Path

CHANGES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()


def test_a_change_is_told_once():
    told = [" ".join(entry.split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", CHANGES, re.MULTILINE)]
    assert len(told) > 100
    assert [entry for entry, times in Counter(told).items() if times > 1] == []

"""What a condition may speak of, as the documentation says it."""

import re
from pathlib import Path

from gviz.query_syntax.condition import NAMES

GUIDE = Path(__file__).parents[2] / "docs" / "debugger.md"


def test_the_guide_lists_every_name():
    said = re.search(r"\*\*A condition\*\* is a Python expression over (.*?)\.\s", GUIDE.read_text(), re.DOTALL)
    assert re.findall(r"`(\w+)`", said[1]) == [*NAMES, "np"]

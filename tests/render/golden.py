"""Golden files: compared, or written anew with GVIZ_WRITE_GOLDEN=1."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name, text):
    path = FOLDER / name
    if os.environ.get("GVIZ_WRITE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text

"""A condition in which a text stands alone, so that it is always true: ``if "conv" or "head" in name``."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import is_of_library, titled
from gviz.explain.edit import LoneText, lone_texts
from gviz.explain.finding import Finding
from gviz.explain.recording_overview import Survey
from gviz.values.plain_text import shown


def lone_text_conditions(survey: Survey) -> Iterator[Finding]:
    """Yield conditions around writes to parameters in which a text is an operand by itself.

    Python takes ``"conv" or "head" in name`` for ``"conv" or ("head" in name)``, and a text is true unless it is empty.
    Only the text of the program shows it; whether the line ran is not known.
    """
    for one in lone_texts(survey.timeline):
        if not is_of_library(one.at.path):
            text = titled(_title(one), shown(one.word))
            means = f"Python takes {shown(one.word)} by itself, and it is always true"
            part = Finding("since", means + "; the else never runs" * (one.is_true and one.whole and one.others))
            fix = "compare each text: 'a' in name or 'b' in name"
            yield Finding("constant-condition", text, 0, 0, (part,), fix, one.at, edit=one.edit)


def _title(one: LoneText) -> str:
    if not one.is_true:
        return "{} has no effect in this condition: it is compared with nothing"
    return f"this {'condition' if one.whole else 'part of a condition'} is always true: {{}} is compared with nothing"

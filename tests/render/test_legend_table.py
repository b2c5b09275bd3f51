"""The legend as a table: one row for states that look alike."""

from gviz.render.graphviz.legend_table import legend_rows
from gviz.render.theme import LIGHT


def test_states_with_the_same_swatch_share_one_row_that_names_both():
    signs = [
        "amber, no gradient: none came",
        "amber, cut: not tracked",
        "dashed, pending: not run yet",
        "done: finished",
    ]
    signs.append("dashed and empty, freed: collected")
    for flows in (False, True):
        text = "".join(legend_rows(signs, LIGHT, 600, flows=flows))
        assert text.count(LIGHT.paints["missing"].fill) == 1
        assert text.count("╌╌╌") == 1
        assert all(
            word in text for word in ("no gradient: none came", "cut: not tracked", "pending: not", "freed: coll")
        )

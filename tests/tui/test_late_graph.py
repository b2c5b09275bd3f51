"""A graph that is older than its recording: shown with what is known of it."""

from stories import late
from tui.test_drawing import panel, tape_rows


def test_a_graph_made_before_the_recording_is_shown_with_what_is_known():
    timeline = late()
    for n in range(len(timeline) + 1):
        assert tape_rows(timeline, n)
        assert all(panel(timeline, n, node, full=full) for node in timeline.nodes for full in (False, True))
    assert panel(timeline, 17, 2, 60)[:10] == [
        "mul  #2                                         MulBackward0",
        "  [3 4] (#1) * ?",
        "value  not stored",
        "with   #1  [3 4]",
        "       a tensor that is not recorded",
        "saved  released, event 16",
        "used by #4 z",
        "incoming [1 1]  from #4 z = add",
        "to #1: g * ? = [1 1] * ?",
        "   outgoing [2 2]",
    ]
    assert "to ?: not recorded" in panel(timeline, 17, 2, 60)
    assert tape_rows(timeline, 18)[1].startswith("   2 mul        1 ?")

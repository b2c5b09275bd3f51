"""What type checkers see of the derived methods is what there is."""

from gviz.engine import stub


def test_the_stub_is_current():
    assert stub.PATH.read_text() == stub.text(), "run `python -m gviz.engine.stub`"

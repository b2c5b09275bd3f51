from gviz.engine import declared


def test_the_table_of_operations_is_current():
    assert declared.PATH.read_text() == declared.text(), "run python -m gviz.engine.declared"

"""Call stacks are told apart by code objects, whatever becomes of those."""

import gc

from gviz import site


def caught(line):
    scope = {"stack": site.stack}
    exec(compile("\n" * line + "def made(): return stack(1)\nkey = made()", f"made_{line}.py", "exec"), scope)
    return scope["key"]


def test_code_that_is_dropped_does_not_lend_its_place_to_later_code():
    keys = []
    for line in range(1, 40):
        keys.append(caught(line))
        gc.collect()
    places = [(frame.path, frame.line, frame.function) for frame in (site.frames(key)[0] for key in keys)]
    assert places == [(f"made_{line}.py", line + 1, "made") for line in range(1, 40)]
    assert len(set(keys)) == len(keys)


def test_a_stack_begins_with_the_frame_it_was_asked_from():
    assert site.codes(site.stack(1))[0] is test_a_stack_begins_with_the_frame_it_was_asked_from.__code__
    assert site.stack(1)[0] == site.stack(1)[0]


def test_frames_caught_elsewhere_make_the_same_key():
    here = test_frames_caught_elsewhere_make_the_same_key.__code__
    assert site.stack_of([(here, 0), (site.stack.__code__, 0)]) == (id(here), 0)

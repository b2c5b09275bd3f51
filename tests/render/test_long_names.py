"""Names and shapes in boxes: whole where they fit, and distinct where they are cut."""

import pytest
from recording import timeline_of

import gviz.engine as torch
from gviz.render.boxes.graph_options import Options
from gviz.render.picture_request import ExportOptions, moment_scene, requested_scene

SHAPE = (16, 64, 112, 112)


def titles(timeline, **options):
    return [box.title for box in moment_scene(timeline, len(timeline), Options(**options)).boxes]


def long_names():
    scale_left_of_the_first_attention_block = torch.ones(2, requires_grad=True)
    scale_right_of_the_first_attention_block = torch.ones(2, requires_grad=True)
    loss = (scale_left_of_the_first_attention_block * scale_right_of_the_first_attention_block).sum()
    loss.backward()
    return loss


def test_names_that_would_be_equal_when_cut_are_whole():
    drawn = titles(timeline_of(long_names), density="brief")
    assert "scale_left_of_the_first_attention_block" in drawn
    assert "scale_right_of_the_first_attention_block" in drawn


def test_names_that_differ_at_the_end_stay_distinct_when_cut():
    def program():
        scale_of_the_first_attention_block_left = torch.ones(2, requires_grad=True)
        scale_of_the_first_attention_block_right = torch.ones(2, requires_grad=True)
        loss = (scale_of_the_first_attention_block_left * scale_of_the_first_attention_block_right).sum()
        loss.backward()
        return loss

    drawn = titles(timeline_of(program), density="brief")
    assert {"scale…_attention_block_left", "scale…_attention_block_right"} <= {*drawn}


def test_a_long_variable_is_a_name():
    def program():
        binary_classification_loss_of_the_discriminator = torch.ones(2, requires_grad=True).sum()
        binary_classification_loss_of_the_discriminator.backward()
        return binary_classification_loss_of_the_discriminator

    timeline = timeline_of(program)
    assert timeline.info(2).name == "binary_classification_loss_of_the_discriminator"


def test_a_picture_has_room_for_longer_names_than_a_terminal():
    def program():
        scale_of_the_first_attention_block = torch.ones(2, requires_grad=True)
        loss = (scale_of_the_first_attention_block * 2).sum()
        loss.backward()
        return loss

    timeline = timeline_of(program)
    assert "scale…_first_attention_block" in titles(timeline, density="brief")
    drawn = requested_scene(timeline, len(timeline), ExportOptions(), fits=True)
    assert [box.title for box in drawn.boxes if box.role == "leaf"] == ["scale_of_the_first_attention_block leaf #1"]


def test_the_name_of_a_function_is_whole():
    def program():
        x, y = torch.ones(2, requires_grad=True), torch.ones(2)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(x, y)
        loss.backward()
        return loss

    timeline = timeline_of(program)
    assert any("binary_cross_entropy_with_logits" in title for title in titles(timeline))


@pytest.mark.parametrize("density", ["brief", "short"])
def test_a_shape_is_whole_however_many_dimensions_it_has(density):
    def program():
        x = torch.ones(*SHAPE[:2], 1, 1, requires_grad=True)
        y = x.expand(*SHAPE)
        loss = y.sum()
        loss.backward()
        return loss, y

    drawn = moment_scene(timeline := timeline_of(program), len(timeline), Options(density=density))
    rows = [row.text for box in drawn.boxes for row in box.rows if box.op == "expand"]
    assert any("(16,64,112,112)" in row for row in rows)
    assert "…" not in "".join(rows)
    assert all(row.characters <= box.width for box in drawn.boxes for row in box.rows)

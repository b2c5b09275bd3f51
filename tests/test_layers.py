"""Imports point one way. A room not in this table may not be built before it is."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks.house import cycles, import_graph

PACKAGE = Path(__file__).parents[1] / "gviz"
HOUSE = PACKAGE.parent / "docs" / "house.md"
BOTTOM = {"argument_checks", "errors", "rich_representation", "source", "system", "values"}
MAY_IMPORT = {
    "argument_checks": {"errors"},
    "errors": set(),
    "rich_representation": set(),
    "values": set(),
    "system": {"errors", "values"},
    "version": set(),
    "source": set(),
    "events": BOTTOM,
    "emit": BOTTOM | {"events"},
    "query_syntax": BOTTOM | {"events"},
    "parameter_names": BOTTOM | {"emit", "events"},
    "state_dict_load": BOTTOM | {"emit", "events"},
    "result_tensors": BOTTOM | {"events"},
    "engine": BOTTOM | {"emit", "events", "state_dict_load", "parameter_names", "result_tensors"},
    "adapters": BOTTOM | {"emit", "events", "state_dict_load", "parameter_names", "result_tensors"},
    "trace": BOTTOM | {"emit", "events", "result_tensors", "query_syntax", "version"},
    "query": BOTTOM | {"events", "trace", "query_syntax"},
    "explain": BOTTOM
    | {"compare", "events", "state_dict_load", "rerun", "result_tensors", "trace", "query_syntax", "query"},
    "compare": BOTTOM | {"trace", "events"},
    "rerun": BOTTOM | {"engine", "trace", "events", "emit"},
    "graphify": BOTTOM | {"engine", "trace", "events", "emit"},
    "live": BOTTOM | {"trace", "emit", "events", "query_syntax"},
    "render": BOTTOM | {"trace", "explain", "compare", "events"},
    "frameworks": BOTTOM | {"adapters", "trace"},
    "tui": BOTTOM | {"render", "live", "explain", "compare", "rerun", "trace", "events", "query_syntax", "query"},
    "api": BOTTOM
    | {
        "result_tensors",
        "engine",
        "emit",
        "frameworks",
        "trace",
        "query_syntax",
        "query",
        "explain",
        "live",
        "render",
        "tui",
    },
    "integrations": BOTTOM | {"api", "engine", "frameworks", "trace", "query_syntax", "explain", "render"},
    "program": BOTTOM | {"engine", "frameworks", "graphify", "live", "trace"},
    "cli": BOTTOM
    | {"api", "compare", "events", "explain", "graphify", "live", "program"}
    | {"render", "trace", "tui", "version", "rerun", "query_syntax", "query", "__file__"},
    "__init__": {"api", "frameworks", "integrations", "rich_representation", "trace", "version"},
    "__main__": {"cli"},
}
OF_TRACE = {
    "timeline", "place_matches", "graph_state", "stepping", "iteration_and_phase_ends", "backward_order",
    "condition_environment", "breakpoint_hits", "event_log", "load", "timed_iterations", "whole_iterations",
    "sequence_period", "node_gradients",
}  # fmt: skip
"""What those who show a trace may use of its room: the rest is how it is recorded, kept and read."""
SHOWING = {"query", "render", "tui", "explain", "compare"}
INSIDE = {
    "trace": """
        graph_state timed_iterations whole_iterations weak_cache codec tensor_storage optimizer_steps stack_tree
        index.event_columns sequence_period file.lock file.bulk_statistics file.retention_policy naming.bindings
        recording.output_capture index.change_lists file.snapshot iterations
        file.format naming.calls event_log phases file.paths naming.assignments nan_and_inf
        index.threads file.connection naming.node_names index.search_index index.backward_reach
        file.event_batches_and_gaps
        iteration_and_phase_spans event_contexts
        index.reference_checks file.reader file.ring_buffer node_table error_index index.node_state
        file.writer timeline recording.source_text backward_order stepping place_matches node_gradients
        condition_environment recording.record breakpoint_hits iteration_and_phase_ends""",
    "live": """
        pseudo_terminal protocol node_cache breakpoint_prefilter gate debuggee debugger_side""",
    "render": """
        option_words theme comparison_table boxes.tensor_pictures boxes.folding boxes.data_preparation boxes.edges
        graphviz.process curve layout.model layout.layers cells.box graphviz.svg_output ranks_text
        boxes.box_row boxes.graph_options layout.grid layout.components cells.raster graphviz.digraph styles
        graphviz.spline graphviz.column_lines boxes.full_detail_rows layout.columns cells.canvas boxes.repeats
        boxes.collapse_choice picture_notes boxes.gradient_bars layout.routing boxes.shown_moment
        boxes.node_states boxes.box_size boxes.box_text boxes.function_calls boxes.drawn_nodes boxes.graph_structure
        boxes.edge_content boxes.collapsed_box boxes.box_content scene
        legend figure page.changes cells.viewport graphviz.box_label graphviz.legend_table
        graphviz.column_division
        graphviz.direction_and_spacing graphviz.spine graphviz.coordinates
        graphviz.parallel_lines graphviz.frame_titles
        graphviz.dot graphviz.column_layout detail_that_fits picture_request page.html_document forms.picture_json
        forms.text forms.mermaid forms.dot_text graphviz.module_frames graphviz.figure_size graphviz.scene_drawing
        page.geometry forms.series page.opened_box_views page.page_data forms.gif
        graphviz.column_choice graphviz.figure_detail forms.png_and_pdf forms.svg forms.animation
        file_formats
        graphviz._worker""",
    "source": "call_stack parsing saved_tensor_names variables_of_objects",
    "values": "plain_text value number_text value_text",
    "adapters/pytorch": """
        private_api cuda_captures tensor_properties cuda_kernels device_values warning_lines
        value_capture operation_catalog node_identity recording_state gradient_hooks node_creation autograd_graph
        call_arguments existing_graph in_place_writes attribute_writes cuda_graphs module_calls optimizers
        function_mode compilation autograd_passes attachment iteration_timer state_snapshot monitored_training""",
    "program": """
        rank_trace_files target traceback_without_gviz start.sitecustomize recording_request interpreter_exit
        torch_alias
        rank_recording recording_process""",
    "cli": """
        lessons options streams signals shell_quoting text_size sarif json_form recording_options trace_arguments
        commands.keys progress picture_files commands.info argument_order program_run recording_input rank_report
        debugger
        commands.diff commands.open main findings commands.tutor commands.record commands.monitor
        commands.export
        commands.demo viewer recording_pages commands.run commands.graphify commands.gradcheck
        commands.show
        commands.check
        commands.why commands.explain
        commands.whatif""",
    "api": """
        moment_argument output_files export_options module_recording drawable debug questions picture_path make_dot
        show export""",
    "query": "nodes expressions moments",
    "compare": "compared_iteration tolerance source_changes alignment recording_comparison ranks",
    "graphify": "break_recorder construct tensor_code conversions rewrite breaks",
    "rerun": """
        change_parser branch branch_recording inputs custom_function_forward node_forward custom_function_backward
        iteration
        finite_differences surrogate_gradients second_order checked_script reproduction_script""",
    "explain": """
        node_question operation_sets formula grad_history parameter_updates backward_passes training
        source_frames program_text source_edit finding statements_without_effect display_names
        iteration_words hook_effects recording_survey program_errors tracking value_computation
        parameter_initialization saved_memory module_times module_costs loss_terms iteration_summary
        outgoing_gradients pass_contributions findings.training_loop.monitor_alarms
        findings.gradient_values.nan_arithmetic findings.gradient_values.nan_remedies
        findings.gradient_values.harmless_nan optimizer_construction
        findings.gradient_values.exploding_recurrence findings.custom_functions.custom_backward_returns
        findings.errors.checkpoint findings.errors.shape_and_dtype_mismatch
        findings.missing_gradient.update_of_loop_variable findings.missing_gradient.ineffective_attribute
        findings.missing_gradient.backward_of_module findings.model.positions_along_batch
        findings.training_loop.state_reset_each_step findings.model.constant_condition
        findings.model.recurrent_output findings.missing_gradient.dropped_result
        findings.missing_gradient.no_gradient findings.missing_gradient.copied_model
        findings.missing_gradient.unregistered_layers findings.missing_gradient.parameters_without_optimizer
        findings.training_loop.adversarial_gradients findings.loss.critic_direction
        findings.training_loop.gradient_clearing findings.gradient_values.opposed_pass_gradients
        findings.errors.optimizer_parameters findings.training_loop.gradient_clipping
        findings.training_loop.loss_scale findings.training_loop.gradient_accumulation
        findings.training_loop.learning_rate findings.gradient_values.hook_mistakes
        findings.gradient_values.zero_gradient findings.computed_value findings.errors.second_backward
        findings.errors.in_place_errors findings.errors.copied_graph findings.errors.state_dict_mismatch
        findings.errors.inference_tensor findings.errors.untracked_loss findings.errors.backward_arguments
        findings.errors.module_misuse findings.errors.error_messages findings.loss.broadcast
        findings.loss.masked_mean findings.model.one_flag_for_all_rows findings.model.activation_twice
        findings.model.default_normalization_dimension findings.loss.shifted_labels
        findings.loss.attached_target findings.loss.collapsing_views findings.loss.loss_of_other_part
        findings.missing_gradient.cut_summand findings.missing_gradient.selection_without_history
        findings.loss.target_range findings.loss.target_in_input findings.training_loop.running_sum
        findings.training_loop.kept_graphs findings.missing_gradient.unused_losses
        findings.training_loop.recurrent_state findings.training_loop.moved_frozen_parameters
        findings.training_loop.weight_decay_of_masked_elements findings.model.shared_parameters
        findings.gradient_values.weight_symmetry findings.gradient_values.padding_row
        findings.state_and_data.data_parallel_replicas findings.state_and_data.aliased_state
        findings.state_and_data.keys_not_loaded findings.state_and_data.running_statistics
        findings.state_and_data.train_eval_mode findings.loss.inverted_loss_mask
        findings.model.inverted_attention_mask findings.loss.contrastive_diagonal
        findings.loss.prediction_range findings.loss.unbounded_loss findings.state_and_data.unread_variable
        findings.loss.log_scale findings.loss.divergence_of_other_parameter
        findings.loss.reparameterization_noise findings.training_loop.schedulers
        findings.model.missing_causal_mask findings.loss.early_mean findings.loss.self_comparison
        findings.model.transmittance findings.gradient_values.flat_hinge
        findings.loss.reference_model_penalty findings.loss.constant_policy_ratio
        findings.training_loop.carried_average findings.training_loop.running_average
        findings.loss.constant_term findings.loss.batch_sum findings.loss.unbalanced_loss_terms
        findings.state_and_data.sample_order findings.training_loop.reversed_list
        findings.training_loop.uncalled_methods findings.missing_gradient.unlearned_buffer
        findings.loss.label_smoothing findings.training_loop.overwritten_setting
        findings.state_and_data.data_changed_in_each_epoch findings.loss.denoising_target
        findings.loss.fisher_information findings.custom_functions.custom_backward_rule
        findings.training_loop.loss_trend findings.gradient_values.nan_origin
        findings.gradient_values.grad_sum_over_passes findings.gradient_values.vanishing_exploding
        findings.training_loop.unchanged_parameters findings.custom_functions.overwritten_incoming_gradient
        findings.custom_functions.saved_intermediates findings.model.data_layout
        findings.custom_functions.second_derivatives findings.loss.gradient_penalty
        findings.missing_gradient.unused_argument findings.training_loop.steps_without_new_gradient
        findings.training_loop.optimizer_made_in_loop findings.training_loop.undone_steps
        findings.model.overwritten_inputs findings.missing_gradient.lost_writes
        findings.model.normalization_of_one_element findings.model.softmax_dimension
        findings.model.mask_after_softmax findings.model.duplicate_index
        findings.loss.losses_of_log_probabilities findings.state_and_data.writes_through_data
        findings.training_loop.rising_rate findings.missing_gradient.untrained_rows
        findings.missing_gradient.detached_weight findings.training_loop.large_steps
        findings.model.large_first_weights findings.missing_gradient.frozen_zero_weights
        findings.loss.policy_gradient_sign findings.training_loop.attack_gradients
        findings.training_loop.repeated_parameter finding_kinds findings.errors.missing_grad why failed_call
        leaf_findings overlapping_findings check typed_question node_facts event_description
        gradcheck_report whatif""",
    "engine": """
        version messages unsupported_names size dtypes memory_format signatures devices array_storage methods
        return_types
        modes operation_watchers anomaly_detection printing node tensor promotion random broadcasting
        instrumentation op
        pointwise_blocks ops._examples ops._kernels ops.strided views arguments argument_parser settings
        functions_and_methods number_conversion
        creation legacy_constructors ops.copying backward unsupported_methods operation_table ops._declaration
        ops.embedding ops.shape ops.comparison ops.diagonals ops.elementary_functions ops.arithmetic
        ops.indexing ops.gathering ops.joining ops.losses ops.properties ops._reduction_arguments ops.reductions
        ops.activations ops.attention ops.convolution ops.extremes ops.images ops.matrix_products ops.einsum
        ops.norms_and_distances ops.linear_algebra
        linalg ops.normalization ops.pooling ops.random_draws random_tensors ops.sorting autograd.anomaly_mode
        autograd.function autograd.grad autograd.functional autograd.gradcheck autograd.graph autograd.variable
        utils.checkpoint utils.data.collate utils.data.dataset utils.data.sampler utils.data.dataloader
        utils.hooks nn._families_by_dimension nn._module_calls nn.functional ops.statistics
        ops.cumulative ops.products
        namespace operation_lookup type_stubs
        nn.hooks nn.parameter
        serialization
        nn.deprecated_names nn.init nn.module nn.activation nn.container nn.conv nn.distance nn.dropout nn.embedding
        nn.linear nn.attention nn.loss nn.padding nn.pooling nn.normalization nn.rnn nn.transformer nn.utils.rnn
        nn.vision nn.modules optim.optimizer optim.algorithms optim.lbfgs optim.lr_scheduler jit.static_graph
        jit.static_graph_events jit.tensor_interpreter jit.notices jit.execution_plan
        jit.nested_tensors jit.graph_tracer jit.cuda_graph_capture graphs cuda static
        jit.traced_function jit.trace_check jit.trace jit.forward_backward_graph existing_graph""",
    "tui": """
        panel_choice terminal_driver graph_view glyphs styled_lines keymaps stop_reason
        breakpoints
        stop_search terminal themes config type_ahead drawing.training_summary drawing.tensor_elements drawing.help
        drawing.watches_and_breakpoints drawing.module_tree drawing.program_output drawing.node_details
        drawing.compared_node_boxes drawing.iterations_and_passes drawing.saved_tensors drawing.source drawing.status
        drawing.tape drawing.minimap source_location node_search cursor session_options session tutorial
        language.command language.other_debuggers commands._paths commands.breakpoint_commands commands.compare
        commands.expressions commands.python_shell commands.editor_and_browser commands.collapse_commands
        commands.info_pages commands.session_file commands.source_listing commands.inspection commands.what_if
        commands.export_copy commands.command_table
        live_session language.parser language.command_input language.completion line_mode live_line_mode
        widgets._graph_drawings widgets.panel_messages widgets.text_panel widgets.list_panels widgets.node_panel
        widgets.graph_canvas widgets.prompt widgets.source_panel widgets.status_rows widgets.tape_panel
        screens.screen_layout screens.session_screen screens.palette screens.panel_stack screens.prompt_control
        screens.key_and_row_actions screens.overlay_pages screens.comparison_screen screens.controller
        screens.debugger_screen screens.live_screen screens.tutor_screen app""",
}
"""The files of a room from the bottom up: each may import those before it, also in functions and for type checkers."""
PAIRS = {
    ("engine.node", "engine.tensor"): "a tensor knows the node that made it, and a node the tensors that it saved",
    ("engine.nn", "engine.nn.modules"): "PyTorch has every module at both paths, and each path shows the other",
}
"""Two files that import each other, with the reason."""
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "samples" not in path.parts)


def imported(text):
    """Every module a file with this text imports, wherever in it, as dotted names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def from_gviz(text):
    """The parts after ``gviz`` of every name imported from it; ``__init__`` for the package itself."""
    for name in imported(text):
        first, *parts = name.split(".")
        if first == "gviz":
            yield parts or ["__init__"]


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = room(path)
    assert {parts[0] for parts in from_gviz(path.read_text())} - {here} <= MAY_IMPORT[here]


def test_the_package_itself_is_an_import_too():
    assert list(from_gviz("def f():\n    import gviz")) == [["__init__"]]
    assert list(from_gviz("from gviz import __version__")) == [["__version__"]]
    assert not any("__init__" in rooms for rooms in MAY_IMPORT.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_who_shows_a_trace_uses_its_timeline(path):
    if room(path) in SHOWING:
        used = {parts[1] for parts in from_gviz(path.read_text()) if parts[0] == "trace"}
        assert used <= OF_TRACE


@pytest.mark.parametrize("room", INSIDE)
def test_imports_inside_a_room_run_one_way(room):
    order, steps = INSIDE[room].split(), room.split("/")
    paths = {
        ".".join(path.relative_to(PACKAGE / room).with_suffix("").parts): path
        for path in (PACKAGE / room).rglob("*.py")
    }
    files = {name: path for name, path in paths.items() if not name.endswith("__init__")}
    assert sorted(files) == sorted(order)
    for place, name in enumerate(order):
        partners = [high.split(".") for low, high in PAIRS if low == ".".join([*steps, name])]
        imports = [parts for parts in from_gviz(files[name].read_text()) if parts[: len(steps)] == steps]
        used = {".".join(parts[len(steps) :]) for parts in imports if parts[: len(steps) + 1] not in partners}
        later = [other for other in order[place:] if other in used or any(one.startswith(f"{other}.") for one in used)]
        assert later == [], name


def test_only_pairs_with_a_reason_import_each_other():
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    found = {tuple(name.removeprefix("gviz.") for name in cycle) for cycle in cycles(import_graph(trees))}
    assert found == set(PAIRS)


def test_the_command_line_takes_no_answers_from_the_commands_of_the_debugger():
    used = [tuple(parts) for path in FILES if room(path) == "cli" for parts in from_gviz(path.read_text())]
    assert not [parts for parts in used if parts[:2] == ("tui", "commands")]


def test_only_the_adapter_imports_torch():
    importing = {path for path in FILES if any(name.split(".")[0] == "torch" for name in imported(path.read_text()))}
    importing.discard(PACKAGE / "frameworks.py")  # names a type of it, for type checkers alone
    assert all(path.is_relative_to(PACKAGE / "adapters" / "pytorch") for path in importing)


def test_every_room_is_in_the_table():
    assert {room(path) for path in FILES} <= MAY_IMPORT.keys()


def test_the_page_about_the_house_says_who_imports_whom():
    rows = re.findall(r"^\| `gviz/(\w+)(?:/|\.py)` \| .* \| (.*) \|$", HOUSE.read_text(), re.MULTILINE)
    bottom = " ".join(re.findall(r"^\* .*$", HOUSE.read_text().partition("| room |")[0], re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", bottom)) == BOTTOM
    told = {room: set(re.findall(r"`(\w+)`", imports)) for room, imports in rows}
    rooms = MAY_IMPORT.keys() - BOTTOM - {"version", "__init__", "__main__"}
    assert told == {room: MAY_IMPORT[room] - BOTTOM - {"__file__"} for room in rooms}


@cache
def _definitions(folder):
    """Return the names of the modules, rooms, functions, classes and attributes in a folder."""
    names = {path.name.removesuffix(".py") for path in folder.iterdir()}
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {it.id if isinstance(it, ast.Name) else getattr(it, "attr", "") for it in targets}
    return names


def _all_definitions(folder):
    return _definitions(folder).union(*(_all_definitions(room) for room in folder.iterdir() if room.is_dir()))


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.as_posix().rpartition("/gviz/")[2]
)
def test_the_page_of_a_room_names_what_is_in_it(path):
    """A name in single backticks belongs to the room, to one that it names, or to one around it; a class to any."""
    page = ast.get_docstring(ast.parse(path.read_text())) or ""
    around = [room for room in path.parents if room.is_relative_to(PACKAGE)]
    known = _all_definitions(path.parent).union({"gviz"}, *map(_definitions, around))
    for name in re.findall(r"(?<!`)`([\w./]+)`(?!`)", page):
        if (PACKAGE.parent / name).exists():
            continue
        parts = re.split("[/.]", name.strip("/").removesuffix(".py"))
        rooms = [room / part for room in around for part in parts if (room / part).is_dir()]
        somewhere = _all_definitions(PACKAGE) if any(part[0].isupper() for part in parts) else set()
        assert {*parts} <= known.union(somewhere, *map(_all_definitions, rooms)), name

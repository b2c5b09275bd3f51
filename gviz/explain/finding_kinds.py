"""Every kind of finding: its name, its level, its meaning, and the functions that find it.

The order is the order of the answers. A question about a node goes to the first kind that has its topic and an answer;
an error goes to the first kind that explains it. A check runs every search, in this order. A new kind is a row here and
a function in a file of `gviz.explain.findings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from gviz.explain.finding import Finding
from gviz.explain.findings import computed_value
from gviz.explain.findings.custom_functions import (
    custom_backward_rule,
    overwritten_incoming_gradient,
    saved_intermediates,
    second_derivatives,
)
from gviz.explain.findings.errors import (
    backward_arguments,
    checkpoint,
    error_messages,
    in_place_errors,
    second_backward,
    shape_and_dtype_mismatch,
    untracked_loss,
)
from gviz.explain.findings.gradient_values import (
    flat_hinge,
    grad_sum_over_passes,
    hook_mistakes,
    nan_origin,
    opposed_pass_gradients,
    padding_row,
    vanishing_exploding,
    weight_symmetry,
    zero_gradient,
)
from gviz.explain.findings.loss import (
    attached_target,
    batch_sum,
    broadcast,
    collapsing_views,
    constant_policy_ratio,
    constant_term,
    contrastive_diagonal,
    critic_direction,
    denoising_target,
    early_mean,
    fisher_information,
    gradient_penalty,
    label_smoothing,
    log_scale,
    loss_of_other_part,
    losses_of_log_probabilities,
    masked_mean,
    policy_gradient_sign,
    prediction_range,
    reference_model_penalty,
    reparameterization_noise,
    self_comparison,
    shifted_labels,
    target_in_input,
    target_range,
    unbalanced_loss_terms,
    unbounded_loss,
)
from gviz.explain.findings.missing_gradient import (
    backward_of_module,
    copied_model,
    cut_summand,
    detached_weight,
    dropped_result,
    frozen_zero_weights,
    ineffective_attribute,
    lost_writes,
    no_gradient,
    parameters_without_optimizer,
    selection_without_history,
    unlearned_buffer,
    untrained_rows,
    unused_argument,
    unused_losses,
    update_of_loop_variable,
)
from gviz.explain.findings.model import (
    activation_twice,
    constant_condition,
    data_layout,
    default_normalization_dimension,
    duplicate_index,
    inverted_attention_mask,
    large_first_weights,
    mask_after_softmax,
    missing_causal_mask,
    normalization_of_one_element,
    one_flag_for_all_rows,
    overwritten_inputs,
    positions_along_batch,
    recurrent_output,
    shared_parameters,
    softmax_dimension,
    transmittance,
)
from gviz.explain.findings.state_and_data import (
    aliased_state,
    data_changed_in_each_epoch,
    data_parallel_replicas,
    keys_not_loaded,
    running_statistics,
    sample_order,
    train_eval_mode,
    unread_variable,
    writes_through_data,
)
from gviz.explain.findings.training_loop import (
    attack_gradients,
    carried_average,
    gradient_accumulation,
    gradient_clearing,
    gradient_clipping,
    kept_graphs,
    large_steps,
    learning_rate,
    loss_scale,
    loss_trend,
    monitor_alarms,
    moved_frozen_parameters,
    optimizer_made_in_loop,
    overwritten_setting,
    recurrent_state,
    repeated_parameter,
    reversed_list,
    rising_rate,
    running_average,
    running_sum,
    schedulers,
    state_reset_each_step,
    steps_without_new_gradient,
    uncalled_methods,
    unchanged_parameters,
    undone_steps,
    weight_decay_of_masked_elements,
)
from gviz.explain.node_question import Question, Topic
from gviz.explain.program_errors import Failure
from gviz.explain.recording_survey import Survey

Severity = Literal["error", "warning", "note", "fact"]
"""The level of a finding.

- error: it raised an error, or the result is certainly wrong.
- warning: the result is most likely wrong.
- note: it may be intended.
- fact: it only describes what happened.
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of finding.

    `answer` explains a node whose question has one of the `topics`, or returns None; of several kinds the first in the
    table answers. `explain` does the same for an error. `find` searches a whole recording; if that can take long, it
    yields None now and then, so that other work can run.
    """

    name: str
    severity: Severity
    meaning: str
    topics: tuple[Topic, ...] = ()
    answer: Callable[[Question], Finding | None] | None = None
    explain: Callable[[Failure], Finding | None] | None = None
    find: Callable[[Survey], Iterable[Finding | None]] | None = None


KINDS: tuple[Kind, ...] = (
    Kind(
        "changed-in-place",
        "error",
        "a tensor that backward needs was written to after it was saved",
        explain=in_place_errors.explain_saved,
    ),
    Kind(
        "changed-through-data",
        "error",
        "a tensor that backward needs was written to through .data or numpy, which autograd does not notice",
        find=writes_through_data.changed_through_data,
    ),
    Kind(
        "overwritten-input",
        "note",
        "an activation in place that overwrites a tensor which the program reads again",
        find=overwritten_inputs.overwritten_inputs,
    ),
    Kind(
        "lost-write",
        "warning",
        "a write in place to a new tensor that nothing uses, such as a copy made by an index",
        find=lost_writes.lost_writes,
    ),
    Kind(
        "dropped-result",
        "warning",
        "an operation on a line of its own whose result nothing gets, so that the line does nothing",
        find=dropped_result.dropped_results,
    ),
    Kind(
        "not-called",
        "warning",
        "a line that names a method such as optimizer.step and does not call it",
        find=uncalled_methods.uncalled_methods,
    ),
    Kind(
        "lost-update",
        "warning",
        "an update that assigns to the variable of a loop, so that no parameter changes",
        find=update_of_loop_variable.lost_updates,
    ),
    Kind(
        "duplicate-index",
        "warning",
        "an addition in place at an index with equal elements, which keeps only one term of each",
        find=duplicate_index.duplicate_index,
    ),
    Kind(
        "changed-data",
        "note",
        "data that a write in place changes again in each epoch, because it shares the memory of the data set",
        find=data_changed_in_each_epoch.changed_again,
    ),
    Kind(
        "written-by-hook",
        "warning",
        "a hook that writes to the parameter that it gets, where its gradient was meant",
        find=hook_mistakes.written_by_hook,
    ),
    Kind(
        "written-gradient",
        "warning",
        "a backward or a hook that writes in place to the gradient that it gets",
        find=overwritten_incoming_gradient.written_gradients,
    ),
    Kind(
        "second-backward",
        "error",
        "backward through a graph whose saved tensors an earlier call released",
        explain=second_backward.explain,
    ),
    Kind("carried-state", "error", "a result carried into the next training step without detach"),
    Kind(
        "leaf-in-place",
        "error",
        "a leaf that requires a gradient was written to while autograd was on",
        explain=in_place_errors.explain_leaf,
    ),
    Kind(
        "untracked-loss",
        "error",
        "backward of a tensor that lost its autograd history",
        explain=untracked_loss.explain_untracked_loss,
    ),
    Kind(
        "given-gradient",
        "error",
        "backward got no gradient argument where it needs one, or one that does not fit",
        explain=backward_arguments.explain_gradient_argument,
    ),
    Kind(
        "mismatch",
        "error",
        "tensors whose shapes, numbers of features or dtypes do not fit together",
        explain=shape_and_dtype_mismatch.explain,
    ),
    Kind(
        "failed",
        "error",
        "the program or a backward pass ended with any other error",
        explain=error_messages.explain_other,
    ),
    Kind(
        "nan-born",
        "error",
        "where the forward made a nan or inf",
        ("bad value", "sent"),
        nan_origin.bad_value,
        find=nan_origin.first_bad_number,
    ),
    Kind(
        "nan-born-backward",
        "error",
        "where a backward rule made a nan or inf",
        ("bad gradient",),
        nan_origin.bad_gradient,
    ),
    Kind(
        "alarm",
        "warning",
        "an alarm of gviz monitor in an iteration that it did not record",
        find=monitor_alarms.alarms,
    ),
    Kind("nan-seed", "error", "a backward pass that started with a nan or inf"),
    Kind(
        "not-cleared",
        "error",
        "a gradient that a step has used and that was not cleared afterwards",
        find=gradient_clearing.not_cleared,
    ),
    Kind(
        "opposed-passes",
        "note",
        "gradients of two backward passes that cancel each other in the same parameters",
        find=opposed_pass_gradients.opposed_passes,
    ),
    Kind(
        "cleared-early",
        "error",
        "gradients cleared before a step used them",
        find=gradient_clearing.cleared_early,
    ),
    Kind(
        "clipped-early",
        "warning",
        "gradients clipped before the backward pass, or before unscale_",
        find=gradient_clipping.clipped_early,
    ),
    Kind(
        "clipped-late",
        "warning",
        "gradients clipped after the step that uses them",
        find=gradient_clipping.clipped_late,
    ),
    Kind(
        "scaled-step",
        "note",
        "a step with gradients that are still multiplied by the loss scale",
        find=loss_scale.scaled_step,
    ),
    Kind(
        "new-optimizer",
        "warning",
        "an optimizer that a loop creates again before each step, without its averages",
        find=optimizer_made_in_loop.new_optimizer,
    ),
    Kind(
        "left-over",
        "note",
        "backward passes after the last step, which no step uses",
        find=gradient_accumulation.left_over,
    ),
    Kind(
        "counted-again",
        "warning",
        "a loss whose gradient counts twice: of a running sum, or alone and in a sum",
        find=running_sum.counted_again,
    ),
    Kind(
        "repeated-step",
        "warning",
        "an optimizer step with gradients that an earlier step has used",
        find=steps_without_new_gradient.repeated_step,
    ),
    Kind(
        "summed-passes",
        "note",
        "backward passes that add up before each step, each for the mean of a part",
        find=gradient_accumulation.summed_passes,
    ),
    Kind(
        "uneven-means",
        "note",
        "means of parts with different numbers of targets, which add up with one weight",
        find=gradient_accumulation.uneven_means,
    ),
    Kind(
        "squared-mean",
        "note",
        "a Fisher information that is the square of a mean gradient, not the mean of squared gradients",
        find=fisher_information.squared_mean,
    ),
    Kind(
        "squared-rate",
        "warning",
        "a schedule that returns learning rates where factors are expected",
        find=learning_rate.squared_rate,
    ),
    Kind(
        "plateau-mode",
        "warning",
        "a schedule that waits for a maximum, and gets a loss",
        find=learning_rate.plateau_mode,
    ),
    Kind(
        "schedule-period",
        "note",
        "a cosine schedule that is stepped beyond its end, so that the learning rate rises again",
        find=learning_rate.cosine_rises,
    ),
    Kind(
        "zero-rate",
        "warning",
        "an optimizer whose learning rate is practically 0 for a long time at the end, so that nothing is trained",
        find=learning_rate.zero_rate,
    ),
    Kind(
        "unfinished-warm-up",
        "warning",
        "a warm-up that counts steps of the optimizer, with a scheduler that is stepped once an epoch",
        find=schedulers.unfinished_warm_up,
    ),
    Kind(
        "rising-rate",
        "warning",
        "a learning rate that rises until the loss, which was falling with a lower one, explodes or is nan",
        find=rising_rate.rising_rate,
    ),
    Kind(
        "restarted-schedule",
        "warning",
        "a resumed training that starts at the first learning rate again, as its scheduler was made too late",
        find=schedulers.restarted_schedule,
    ),
    Kind(
        "doubled-schedule",
        "warning",
        "two equal schedulers of one optimizer, while another optimizer has none",
        find=schedulers.doubled_schedule,
    ),
    Kind(
        "copied-model",
        "warning",
        "a gradient that goes to a copy of a model, while the model that the optimizer holds gets none",
        find=copied_model.gradients_of_copies,
    ),
    Kind("requires-none", "fact", "a leaf that is frozen, or data", ("missing",), no_gradient.not_tracked),
    Kind("no-input-requires", "fact", "a result of tensors that require no gradient"),
    Kind("cleared", "fact", "a .grad that the program has set to None", ("missing",), no_gradient.cleared_grad),
    Kind(
        "not-a-leaf",
        "warning",
        ".grad of a tensor that is not a leaf (call retain_grad())",
        ("missing",),
        no_gradient.not_a_leaf,
        find=no_gradient.grads_read_in_vain,
    ),
    Kind("rebound", "warning", "a name that referred to a leaf and now refers to a result made from it"),
    Kind("no-pass", "fact", "no backward pass has run since the node was created", ("missing",), no_gradient.no_pass),
    Kind("pending", "fact", "the running pass has not reached the node yet", ("missing",), no_gradient.pending),
    Kind("not-asked-for", "fact", "the pass computed gradients of other inputs only"),
    Kind("nothing-arrived", "fact", "a pass reached the node but no gradient arrived, or an error ended it before"),
    Kind(
        "cut",
        "warning",
        "every path from the loss to the leaf is cut: detach, no_grad, .data, integers, numpy",
        find=no_gradient.checkpoints_without_graph,
    ),
    Kind(
        "other-recomputation",
        "warning",
        "an operation in a checkpoint that gives other numbers when backward computes it again",
        find=checkpoint.other_recomputation,
    ),
    Kind(
        "idle-graph",
        "note",
        "gradients with create_graph=True on which no loss depends",
        find=second_derivatives.idle_graph,
    ),
    Kind(
        "cross-derivatives",
        "note",
        "a second derivative of a sum of several columns, although the program reads only one column",
        find=second_derivatives.cross_derivatives,
    ),
    Kind(
        "flat-derivative",
        "warning",
        "a second derivative of a network of relus, which is always 0",
        find=second_derivatives.flat_derivatives,
    ),
    Kind(
        "partial-norm",
        "warning",
        "a gradient penalty with several norms for each sample, as of images over their channels",
        find=gradient_penalty.partial_norms,
    ),
    Kind(
        "drawn",
        "warning",
        "a random draw that sends no gradient to the parameters that it is drawn from",
        find=no_gradient.draws,
    ),
    Kind(
        "unused",
        "warning",
        "a leaf that requires a gradient and that no operation used",
        find=unused_argument.unused_arguments,
    ),
    Kind(
        "not-reached",
        "warning",
        "a leaf that was used, but not for the tensor that backward was called on",
        ("missing",),
        no_gradient.no_path,
    ),
    Kind(
        "not-added",
        "fact",
        "a .grad without what the last pass computed",
        ("gradient",),
        grad_sum_over_passes.not_added,
    ),
    Kind(
        "assigned",
        "fact",
        "a .grad that the program has assigned or changed",
        ("gradient",),
        grad_sum_over_passes.changed_by_program,
    ),
    Kind(
        "dead-units",
        "warning",
        "an activation with zero gradient in every unit",
        ("gradient",),
        zero_gradient.zero,
    ),
    Kind(
        "changed-by-hook",
        "warning",
        "a hook that each iteration registers again, or that zeroes or negates a gradient",
        find=hook_mistakes.turning_hooks,
    ),
    Kind("spent-loss", "fact", "a loss of exactly 0: every margin is satisfied"),
    Kind(
        "underflow",
        "warning",
        "gradients too small for float16 or bfloat16, which become zero",
        find=zero_gradient.underflows,
    ),
    Kind("saturated", "warning", "an input so large that the derivative of the function is zero"),
    Kind("clamped", "warning", "a clamp with every element at its limit"),
    Kind("last-of-reverse", "warning", "a bidirectional layer whose backward direction is read only at its first step"),
    Kind(
        "cancelled",
        "note",
        "contributions that cancel each other: from several uses, or of all elements, as for a softmax",
    ),
    Kind("masked", "warning", "a mask, an index or a factor of zero that makes every gradient zero"),
    Kind(
        "vanishing",
        "warning",
        "a gradient that becomes very small on its path to a leaf",
        ("gradient",),
        vanishing_exploding.vanishing_or_exploding,
        find=vanishing_exploding.find_vanishing,
    ),
    Kind(
        "exploding",
        "warning",
        "a gradient that becomes very large on its path to a leaf",
        find=vanishing_exploding.find_exploding,
    ),
    Kind(
        "unbounded-loss",
        "warning",
        "a loss that falls without bound, because a term of at least 0 is subtracted",
        find=unbounded_loss.falls_without_bound,
    ),
    Kind("broadcast", "warning", "shapes (n, 1) and (n,) that were broadcast to (n, n)", find=broadcast.broadcast),
    Kind(
        "one-element",
        "warning",
        "a softmax or normalization over one element, whose result is always the same",
        find=normalization_of_one_element.one_element,
    ),
    Kind("misspelled", "warning", "an attribute that is nearly called requires_grad, and that autograd does not read"),
    Kind(
        "constant-condition",
        "warning",
        "a condition around the initialization or freezing of parameters that a lone text makes always true",
        find=constant_condition.lone_text_conditions,
    ),
    Kind(
        "module-backward",
        "warning",
        "a method `backward` of a module, which autograd never calls",
        find=backward_of_module.backwards_of_modules,
    ),
    Kind(
        "position-of-samples",
        "warning",
        "a positional encoding along the batch, where the attention looks over the other dimension",
        find=positions_along_batch.positions_along_batch,
    ),
    Kind(
        "state-made-anew",
        "warning",
        "a momentum or average that is made anew in each step, so that it carries nothing over",
        find=state_reset_each_step.states_reset_each_step,
    ),
    Kind(
        "module-flag",
        "warning",
        "requires_grad of a module, a plain attribute that freezes and unfreezes none of its parameters",
        find=ineffective_attribute.module_flags,
    ),
    Kind(
        "unread-attribute",
        "warning",
        "an attribute that PyTorch does not have, such as a misspelt requires_grad, or lr of an optimizer",
        find=ineffective_attribute.unread_attributes,
    ),
    Kind(
        "policy-sign",
        "warning",
        "a policy gradient with the wrong sign, which makes actions with a high reward less likely",
        find=policy_gradient_sign.policy_gradient_sign,
    ),
    Kind(
        "attack-gradient",
        "warning",
        "a step that also uses what passes for the gradient of an input have left in the parameters",
        find=attack_gradients.attack_gradients,
    ),
    Kind("swapped", "warning", "a loss whose input is data and whose target is trained"),
    Kind(
        "summed-loss",
        "note",
        "a loss that sums over a batch instead of taking its mean",
        find=batch_sum.summed_loss,
    ),
    Kind(
        "mean-and-sum",
        "note",
        "a loss that adds the mean over a batch and the sum over one, or over rows of latents that collapse",
        find=unbalanced_loss_terms.mean_and_sum,
    ),
    Kind(
        "batch-sum",
        "warning",
        "the sum over a whole batch that is added to each sample before the mean over the batch",
        find=batch_sum.batch_sums,
    ),
    Kind(
        "softmax-twice",
        "warning",
        "a softmax of probabilities: the loss applies it itself",
        find=activation_twice.softmax_twice,
    ),
    Kind(
        "squashed-twice",
        "warning",
        "a sigmoid or tanh of its own result, as in the correction of a log-probability",
        find=activation_twice.squashed_twice,
    ),
    Kind(
        "no-log-probabilities",
        "warning",
        "an nll_loss or ctc_loss of scores or probabilities, or along the wrong dimension",
        find=losses_of_log_probabilities.no_log_probabilities,
    ),
    Kind(
        "masked-after-softmax",
        "warning",
        "a mask over the weights of a softmax, whose rows no longer sum to one",
        find=mask_after_softmax.masked_after_softmax,
    ),
    Kind(
        "masked-mean",
        "note",
        "the mean of a masked loss that also counts the masked elements",
        find=masked_mean.masked_mean,
    ),
    Kind(
        "flag-for-rows",
        "warning",
        "one flag of any() or all() that masks all rows, where each row needs its own",
        find=one_flag_for_all_rows.flags_for_rows,
    ),
    Kind(
        "early-mean",
        "warning",
        "a mean over samples that is taken before each gets its weight, as of a focal loss or a return",
        find=early_mean.early_means,
    ),
    Kind(
        "wrong-targets",
        "warning",
        "targets of 0 and 1 for a loss that takes -1 and 1, or targets outside of 0 to 1",
        find=target_range.wrong_targets,
    ),
    Kind(
        "unreachable-target",
        "warning",
        "a prediction whose last function cannot give its targets: a sigmoid for targets above 1",
        find=prediction_range.unreachable_targets,
    ),
    Kind(
        "rectified-scores",
        "warning",
        "scores that a relu keeps from being negative, for a loss of classes",
        find=prediction_range.rectified_scores,
    ),
    Kind(
        "other-samples",
        "warning",
        "a target in another random order than the input of the model",
        find=sample_order.other_samples,
    ),
    Kind(
        "label-smoothing",
        "note",
        "smoothed targets that get 1/N for each class, and not eps/N",
        find=label_smoothing.share_of_one,
    ),
    Kind(
        "overwritten-setting",
        "note",
        "a setting that its own warm-up overwrites, so that each step starts from the last result",
        find=overwritten_setting.overwritten_settings,
    ),
    Kind(
        "unlearned-buffer",
        "note",
        "a buffer with the random numbers and the use of a parameter, which no optimizer changes",
        find=unlearned_buffer.unlearned_buffers,
    ),
    Kind(
        "reversed-in-loop",
        "warning",
        "a list that is reversed each time that a loop adds to it, and not once at the end",
        find=reversed_list.reversed_in_loops,
    ),
    Kind(
        "target-in-input",
        "note",
        "a target that is a part of the window that the model gets, so that it can be copied",
        find=target_in_input.target_in_input,
    ),
    Kind(
        "no-causal-mask",
        "warning",
        "attention over all positions in a model whose labels are the next tokens of its own input",
        find=missing_causal_mask.no_causal_mask,
    ),
    Kind(
        "shifted-twice",
        "warning",
        "labels of tokens that are two places after the input, as those that are shifted twice",
        find=shifted_labels.shifted_twice,
    ),
    Kind(
        "noised-target",
        "warning",
        "a model whose target is its own input with the noise that was added to it",
        find=denoising_target.noised_target,
    ),
    Kind(
        "constant-ratio",
        "warning",
        "a ratio to the policy before that is always 1, as the old log-probabilities are computed anew for each step",
        find=constant_policy_ratio.constant_ratios,
    ),
    Kind(
        "constant-reference",
        "note",
        "a difference of log-probabilities that a loss adds up, so that the gradient does not depend on the second one",
        find=reference_model_penalty.constant_reference,
    ),
    Kind(
        "other-noise",
        "warning",
        "a target of random noise that is another draw than the noise in the input",
        find=denoising_target.other_noise,
    ),
    Kind(
        "last-of-padded",
        "warning",
        "the last step of padded sequences, which is padding for all but the longest",
        find=recurrent_output.last_of_padded,
    ),
    Kind(
        "log-scale",
        "note",
        "the logarithm of a scale in a loss with the wrong sign, as the log-determinant of a flow",
        find=log_scale.wrong_log_scales,
    ),
    Kind(
        "noise-scale",
        "warning",
        "noise that is multiplied by another number than the deviation of the Gaussian whose divergence is in the loss",
        find=reparameterization_noise.wrong_noise_scales,
    ),
    Kind(
        "unread",
        "note",
        "a done flag, a mask or lengths that the function that needs them never reads",
        find=unread_variable.unread_variables,
    ),
    Kind(
        "own-similarity",
        "warning",
        "a contrastive loss that compares each row also with itself",
        find=contrastive_diagonal.own_similarity,
    ),
    Kind(
        "softmax-dim",
        "note",
        "attention weights that add up to one over another dimension or index than the one they are summed over",
        find=softmax_dimension.softmax_of_other_dim,
    ),
    Kind(
        "default-dim",
        "note",
        "a normalization over the tokens of (batch, tokens, features), because no dimension is given",
        find=default_normalization_dimension.default_dimensions,
    ),
    Kind(
        "inverted-mask",
        "warning",
        "a mask that shows attention only what comes later or the padding, or a loss only what is ignored",
        find=inverted_attention_mask.inverted_masks,
    ),
    Kind(
        "attached-target",
        "note",
        "a loss whose target depends on trained parameters",
        find=attached_target.attached_target,
    ),
    Kind(
        "collapsing-views",
        "warning",
        "a loss that only pulls two results of one model together, so that both become constant",
        find=collapsing_views.collapsing_views,
    ),
    Kind(
        "reaches-other-part",
        "note",
        "a loss that reaches the parameters of another part, which has its own loss",
        find=loss_of_other_part.reaches_other_part,
    ),
    Kind(
        "agreeing-adversaries",
        "warning",
        "a critic and a generator that push the score of generated samples the same way",
        find=critic_direction.agreeing_adversaries,
    ),
    Kind(
        "partly-detached",
        "note",
        "a state that a loop detaches in some steps between two passes",
        find=recurrent_state.partly_detached,
    ),
    Kind(
        "last-term",
        "note",
        "a sum that starts with zeros and that a loop replaces, so that only its last term is used",
        find=running_sum.last_term,
    ),
    Kind(
        "carried-average",
        "warning",
        "an average of models that begins with the average of the last round, so that the weights grow",
        find=carried_average.carried_average,
    ),
    Kind(
        "runaway-average",
        "warning",
        "a running average of the weights with the wrong sign or without a factor, which runs away from them",
        find=running_average.running_averages,
    ),
    Kind(
        "repeated-correction",
        "note",
        "a correction that each turn of a loop over samples adds again, so that sample i gets it i times",
        find=running_sum.repeated_correction,
    ),
    Kind(
        "inclusive-product",
        "warning",
        "a cumulative product of 1 - alpha that includes the element itself, multiplied by the same alpha",
        find=transmittance.inclusive_product,
    ),
    Kind(
        "flat-hinge",
        "warning",
        "a hinge that is always 0, because an extreme picks the infinity of a mask with the wrong sign",
        find=flat_hinge.flat_hinge,
    ),
    Kind(
        "self-comparison",
        "warning",
        "a tensor that is compared with itself, in a loss or as its own old value, so that it is always 0",
        find=self_comparison.compared_with_itself,
    ),
    Kind(
        "constant-term",
        "warning",
        "a term of a loss that is the same number in every pass, although its inputs change",
        find=constant_term.constant_terms,
    ),
    Kind(
        "cut-summand", "warning", "a part of a loss without a path to trained parameters", find=cut_summand.cut_summand
    ),
    Kind(
        "detached-weight",
        "warning",
        "a weight that one line uses through .data or detach(), while another use of it brings a gradient",
        find=detached_weight.detached_weights,
    ),
    Kind(
        "cut-selection",
        "warning",
        "elements without a gradient that a loss selects, such as the logits of the true classes",
        find=selection_without_history.selected_without_gradient,
    ),
    Kind(
        "dropout-in-evaluation",
        "note",
        "dropout that is active under no_grad",
        find=train_eval_mode.dropout_in_evaluation,
    ),
    Kind(
        "trained-in-eval",
        "note",
        "a model trained with all of its dropout and batch norm in eval mode",
        find=train_eval_mode.trained_in_eval,
    ),
    Kind(
        "frozen-statistics",
        "note",
        "a batch norm with frozen parameters that still updates its running statistics",
        find=running_statistics.frozen_statistics,
    ),
    Kind(
        "initial-statistics",
        "warning",
        "a trained batch norm that evaluates with the statistics it was made with",
        find=running_statistics.initial_statistics,
    ),
    Kind(
        "mixed-rows",
        "warning",
        "a view with the sizes of a transposed tensor, as of classes that a loss reads in the last dimension",
        find=data_layout.mixed_rows,
    ),
    Kind(
        "batch-first",
        "warning",
        "a layer for sequences without batch_first=True that takes the samples for time steps",
        find=data_layout.samples_as_steps,
    ),
    Kind(
        "graphs-kept", "warning", "graphs of many iterations that the program keeps alive", find=kept_graphs.kept_graphs
    ),
    Kind(
        "ignored-keys",
        "warning",
        "a load_state_dict that loads little or nothing, because the keys have another prefix",
        find=keys_not_loaded.ignored_keys,
    ),
    Kind("shared", "note", "one parameter that several modules use", find=shared_parameters.shared),
    Kind(
        "untied",
        "warning",
        "an embedding and an output layer that begin with one parameter and are trained apart",
        find=shared_parameters.untied,
    ),
    Kind(
        "frozen-moved",
        "warning",
        "a frozen parameter that momentum or weight decay moves, because its gradient is zeros and not None",
        find=moved_frozen_parameters.frozen_moved,
    ),
    Kind(
        "frozen-zero",
        "warning",
        "weights that are frozen while all of them are zero, as adapters that were added before the freezing",
        find=frozen_zero_weights.frozen_zero_weights,
    ),
    Kind(
        "pruned-moved",
        "warning",
        "weights that the program has set to zero, and that momentum moves again although their gradient is masked",
        find=moved_frozen_parameters.pruned_moved,
    ),
    Kind(
        "same-units",
        "warning",
        "a weight whose rows are equal and stay equal, so all units are the same",
        find=weight_symmetry.same_units,
    ),
    Kind(
        "padding-trained",
        "note",
        "the padding row of an embedding, which is trained",
        find=padding_row.padding_trained,
    ),
    Kind(
        "padding-used",
        "note",
        "the padding row of an embedding that is a real token, or a target of the loss",
        find=padding_row.padding_used,
    ),
    Kind(
        "padding-filled",
        "note",
        "the padding row of an embedding that an initialization has filled",
        find=padding_row.padding_filled,
    ),
    Kind(
        "saved-by-reference",
        "error",
        "a state that was saved without a copy, changed with the model, and is restored onto itself",
        find=aliased_state.restored_onto_itself,
    ),
    Kind(
        "copied-onto-itself",
        "warning",
        "a model whose own state is copied onto it again and again, so that nothing changes",
        find=aliased_state.copied_onto_itself,
    ),
    Kind(
        "decayed", "note", "elements that a hook freezes and weight decay shrinks", find=moved_frozen_parameters.decayed
    ),
    Kind(
        "masked-decayed",
        "warning",
        "elements whose gradient the program sets to zero before each step, and that weight decay changes",
        find=weight_decay_of_masked_elements.masked_decayed,
    ),
    Kind(
        "replicas-apart",
        "note",
        "parameters that get the same gradient and have different values",
        find=data_parallel_replicas.replicas_apart,
    ),
    Kind(
        "never-stepped",
        "warning",
        "a parameter that gets gradients and that no optimizer updates",
        find=parameters_without_optimizer.never_stepped,
    ),
    Kind(
        "empty-step",
        "warning",
        "an optimizer step without a backward pass before it, or with frozen parameters only",
        find=steps_without_new_gradient.empty_step,
    ),
    Kind(
        "diverging",
        "warning",
        "a loss that grows to a thousand times its start, and that still rises",
        find=loss_trend.diverging,
    ),
    Kind(
        "untrained-rows",
        "warning",
        "rows of a weight that get no gradient, as their part of the layer's result is cut off or unused",
        find=untrained_rows.untrained_rows,
    ),
    Kind(
        "large-start",
        "warning",
        "first weights so large that each layer multiplies the size of what goes into it",
        find=large_first_weights.large_first_weights,
    ),
    Kind(
        "large-steps",
        "error",
        "a learning rate so large that the first steps make parameters grow until a number is inf or nan",
        find=large_steps.large_steps,
    ),
    Kind("not-falling", "note", "a loss that is no smaller after many steps", find=loss_trend.not_falling),
    Kind("unused-losses", "note", "losses of a loop without a backward pass", find=unused_losses.unused_losses),
    Kind(
        "unchanged",
        "warning",
        "a parameter that did not change in steps with a gradient",
        find=unchanged_parameters.unchanged,
    ),
    Kind(
        "repeated-parameter",
        "warning",
        "a parameter that is more than once in the list of an optimizer, so that each step updates it twice",
        find=repeated_parameter.repeated_parameters,
    ),
    Kind(
        "undone-steps",
        "note",
        "a parameter whose old numbers the program writes back after each step",
        find=undone_steps.undone_steps,
    ),
    Kind(
        "wrong-rule",
        "warning",
        "a function whose backward is not the derivative of its forward",
        find=custom_backward_rule.wrong_rule,
    ),
    Kind(
        "constant-intermediate",
        "warning",
        "a second derivative through a function that saves an intermediate, which backward sees as a constant",
        find=saved_intermediates.constant_intermediates,
    ),
    Kind(
        "ranks-part",
        "warning",
        "a rank that no longer agrees with the others in parameters, gradients, buffers, graph, or what it ran",
    ),
    Kind(
        "contribution",
        "fact",
        "a contribution over one edge, and the backward rule that computed it",
        ("sent",),
        grad_sum_over_passes.sent_contribution,
    ),
    Kind(
        "incoming",
        "fact",
        "the incoming gradient of a running pass, as far as it has arrived",
        ("gradient",),
        grad_sum_over_passes.incoming_sum,
    ),
    Kind(
        "gradient",
        "fact",
        "a gradient as the sum of its contributions",
        ("gradient",),
        grad_sum_over_passes.grad_sum,
    ),
    Kind("stepped", "fact", "what the last optimizer step did, and to which parameters"),
    Kind("no-gradient", "fact", "the leaves that require a gradient and have none, each with its reason"),
    Kind("alive", "fact", "which graphs are alive, with their nodes, saved tensors and bytes, and what holds them"),
    Kind("memory", "fact", "the memory that a graph keeps for backward, by module, line and tensor, and its peak"),
    Kind("took-no-part", "fact", "an object that a variable holds and that was not used in the recording"),
    Kind("unborn", "fact", "the node is created later", ("unborn",), computed_value.unborn),
    Kind("computed", "fact", "a value, by the formula that made it", ("value",), computed_value.computed_value),
    Kind("written", "fact", "a value that was changed in place after its operation"),
)

BY_NAME = {kind.name: kind for kind in KINDS}


def located(finding: Finding) -> Finding:
    """Return a finding with its place in the title, for an answer that shows no source line; facts stay as they are."""
    kind = BY_NAME.get(finding.kind)
    if kind is None or kind.severity == "fact" or not finding.where or finding.where in finding.text:
        return finding
    return replace(finding, text=f"{finding.text}, at {finding.where}")


def findable() -> list[Kind]:
    """Return the kinds that a check may report: all that are more than a fact."""
    return [kind for kind in KINDS if kind.severity != "fact"]

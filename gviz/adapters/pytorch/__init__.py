"""The adapter for PyTorch, and the only package that imports it.

The adapter observes a program that runs on PyTorch and emits the same events as the built-in engine. It copies the
values it keeps at the event, holds no strong reference to the program's tensors, and never changes what the program
computes.

Read first: `attachment` (everything that is patched into PyTorch and removed again), `function_mode` (what happens when
the program calls an operation), `autograd_graph` (how a ``grad_fn`` becomes a node of the trace).

The steps for one call, ``z = x * y`` with ``x = torch.tensor(2.0, requires_grad=True)``:

1. `attachment.Attachment` has entered a function mode in the thread. PyTorch consults the mode before every operation,
   so `function_mode.CallListener` receives ``mul``. `function_mode` looks up the plan for it: here, run and observe.
2. The operation runs. `call_arguments.call_of` describes its arguments; `private_api` reads what PyTorch exposes only
   under private names.
3. `autograd_graph.visit` walks back from ``z.grad_fn`` to the nodes that the trace already has. ``x`` becomes a leaf.
   `autograd_graph.inputs_of` resolves the edges of ``MulBackward0``; `operation_catalog` has its name and its backward
   rules.
4. `node_creation.emit_created` emits `NodeCreated` with the numbers that `value_capture.Capture` copies.
   `node_identity.Marks` maps the tensor and its ``grad_fn`` to their nodes, through weak references only.
5. `gradient_hooks.watch_node` registers a hook on ``MulBackward0``. When `autograd_passes.run` passes ``z.backward()``
   on to the engine, the hook emits `GradFlowed` for each contribution, and `GradAccumulated` at the leaf.

On a GPU, `device_values` computes the statistics of tensors (with the Triton kernels of `cuda_kernels`) without
waiting for the device. Each of the other files covers one kind of thing: `module_calls` (module calls, parameter
names), `optimizers`, `in_place_writes`, `attribute_writes` (``.grad``, ``requires_grad_()``, the program's hooks),
`compilation` (regions that are not recorded), `cuda_graphs`, `warning_lines`, and `existing_graph` (a graph built
before the recording).
Imports go one way: from `private_api` and `value_capture` at the bottom to `attachment` at the top.
"""

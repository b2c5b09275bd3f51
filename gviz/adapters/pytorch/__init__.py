"""Real PyTorch under the debugger; the one package that imports it.

The adapter listens to a program that runs on PyTorch, and writes the same events as the built-in engine. It copies what
it keeps at the event, refers to no tensor of the program, and never changes what the program computes.

Read first: `attachment` (everything that is put into PyTorch, and taken out again), `function_mode` (what happens when
the program calls an operation), `autograd_graph` (how a ``grad_fn`` becomes a node of the trace).

The walk of one call, ``z = x * y`` with ``x = torch.tensor(2.0, requires_grad=True)``:

1. `attachment.Attached` has entered a function mode in the thread. PyTorch asks it before every operation, so
   `function_mode.Listening` is asked about ``mul``. `function_mode` looks up the plan for it: here, run and observe.
2. The operation runs. `arguments.call_of` describes what it was given; `private_api` answers what PyTorch says only
   under private names.
3. `autograd_graph.visit` walks from ``z.grad_fn`` back to what the trace does not have yet. ``x`` becomes a leaf.
   `autograd_graph.inputs_of` finds where the edges of ``MulBackward0`` lead; `operations` knows its name and its rules.
4. `creation.say_created` emits `NodeCreated`, with the numbers that `values.Capture` copies. `node_identity.Marks`
   remembers which node the tensor and its ``grad_fn`` are, through weak references only.
5. `gradient_hooks.watch_node` puts a hook on ``MulBackward0``. When `autograd_passes.run` lets ``z.backward()`` into
   the engine, the hook emits `GradFlowed` for each contribution, and `GradAccumulated` at the leaf.

A GPU is asked about its tensors by `cuda_statistics` (with the Triton kernels of `cuda_kernels`), and nothing waits
for the answer. The other files each add one kind of thing: `modules` (calls of modules, names of parameters),
`optimizers`, `in_place_writes`, `attribute_writes` (``.grad``, ``requires_grad_()``, hooks of the program),
`compilation` (regions that are not recorded), `cuda_graphs`, `warning_lines`, and `existing_graph` (a graph made
before a recording).
Imports run one way: from `private_api` and `values` at the bottom to `attachment` at the top.
"""

"""PyTorch's own error texts, so that a search for them finds PyTorch's answers.

They are those of PyTorch 2.13. Each is raised in one place of the engine.
"""

from __future__ import annotations

from gviz.source.call_stack import warn

SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
LEAF_IN_PLACE = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW_IN_PLACE = "a view of a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_NO_GRAD = "A view was created in no_grad mode and {how} with grad mode enabled. "
VIEW_OF_OUTPUT = "Output {output_nr} of {name} is a view {how}. "
OF_VIEW = "and {how}"
OF_VIEW_OF_NO_GRAD = "of a view which was created in no_grad mode and {how} with grad mode enabled"
OF_VIEW_OF_INFERENCE = "of a view which was created in inference mode and {how} in normal mode"
NO_GRAD_VIEW = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
    "both outside (if you want the inplace to be tracked)."
)
MULTI_OUTPUT_VIEW = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
VIEW_OF_INFERENCE = "A view was created in inference mode and {how} in normal mode. "
INFERENCE_VIEW = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the inference_mode block (if you don't want the inplace to be "
    "tracked) or both outside (if you want the inplace to be tracked)."
)
INFERENCE_IN_PLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)
INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)
INFERENCE_VERSION = "Inference tensors do not track version counter."
INFERENCE_FLAG = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
CUSTOM_FUNCTION_VIEW = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
OVERLAPPING_WRITE = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
OVERLAPPING_READ = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
NON_SCALAR_ROOT = "grad can be implicitly created only for scalar outputs"
UNTRACKED_ROOT = "element {index} of tensors does not require grad and does not have a grad_fn"
GRAD_SHAPE = (
    "Mismatch in shape: grad_output[{index}] has a shape of torch.Size({grad}) and output[{index}] has a shape of "
    "torch.Size({output})."
)
UNUSED_INPUT = (
    "The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
    "this is the desired behavior."
)
UNTRACKED_INPUT = "One of the differentiated Tensors does not require grad"
MATERIALIZE_UNUSED = (
    "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
)
MATERIALIZE_EDGE = "materialize_grads cannot be used when the given input is a GradientEdge"
ROOT_KIND = "Expected output to be a torch.Tensor"
GRADIENT_KIND = "gradients can be either Tensors or None, but got {name}"
SEED_COUNT = "got {roots} tensors and {seeds} gradients"
INPUT_KIND = "all inputs have to be Tensors or GradientEdges, but got {name}"
INPUTS_MAPPING = (
    "`inputs` argument to `{function}()` must be a dict, not {name}. Other Mapping types are not supported."
)
ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts "
    "of the graph, please use torch.autograd.backward."
)
GRAD_VARIABLES = "`grad_variables` is deprecated. Use `grad_tensors` instead."
BOTH_GRAD_VARIABLES = (
    "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
    "`grad_tensors`."
)
BATCH_SHAPE = (
    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
    "sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
    "detected: grad_output[{index}] has a shape of torch.Size({grad}) and output[{index}] has a shape of "
    "torch.Size({output}). If you only want some tensors in `grad_output` to be considered batched, consider using "
    "vmap."
)
BATCH_OF_EDGE = "Batched grads are not supported with GradientEdge"
BATCH_WITHOUT_ROWS = "is_grads_batched=True needs grad_outputs whose first dimension counts the gradients"
EMPTY_INPUTS = "`inputs` argument to `{function}()` cannot be empty."
DTYPE_CANNOT_REQUIRE = "only Tensors of floating point and complex dtype can require gradients"
FACTORY_CANNOT_REQUIRE = "Only Tensors of floating point and complex dtype can require gradients"
METHOD_CANNOT_REQUIRE = "only Tensors of floating point dtype can require gradients"
FLAG_ON_NON_LEAF = "you can only change requires_grad flags of leaf variables."
FLAG_OFF_HINT = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
    "var_no_grad = var.detach()."
)
DATA_DTYPE = "data set to a tensor that requires gradients must be floating point or complex dtype"
DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)
NUMPY_OF_TRACKED = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
SCALAR_OF_TRACKED = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
    "tensor.detach() first."
)
NOT_WRITABLE = "attribute '{name}' of 'torch._C.TensorBase' objects is not writable"
DATA_DELETED = "Deleting tensor data is not allowed. Delete tensor instead!"
REVERSED_DIMS = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
    "error in a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - "
    "1, -1, -1))` to reverse the dimensions of a tensor."
)
BYTE_INDEX = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
LIST_OF_KEYS = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)
CANNOT_RETAIN = "can't retain_grad on Tensor that has requires_grad=False"
CANNOT_HOOK = "cannot register a hook on a tensor that doesn't require gradient"
GRAD_TYPE = "assigned grad expected to be a Tensor or None but got grad of type {name}"
GRAD_SIZE = (
    "attempting to assign a gradient of size '{grad}' to a tensor of size '{own}'. Please ensure that the gradient and "
    "the tensor are the same size"
)
GRAD_SELF = "can't assign Variable as its own grad"
GRAD_DTYPE = (
    "attempting to assign a gradient with dtype '{grad}' to a tensor with grad_dtype '{own}'. The gradient must match "
    "the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a "
    "specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its "
    "gradient may break downstream systems that assume they match."
)
INVALID_GRADIENT = (
    "Function {name} returned an invalid gradient at index {index} - got {got} but expected shape compatible with "
    "{expected}"
)
INVALID_SEED = "invalid gradient at index {index} - got {got} but expected shape compatible with {expected}"
GRADIENT_COUNT = "function {name} returned an incorrect number of gradients (expected {expected}, got {got})"
GRADIENT_OF_NO_TENSOR = (
    "function {name} returned a gradient different than None at position {position}, but the corresponding forward "
    "input was not a Variable"
)
GRADIENT_TYPE = "expected Variable or None (got {name})"
NO_FORWARD = "You must implement the forward function for custom autograd.Function."
NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
    "mode AD."
)
BACKWARD_AND_VJP = (
    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one "
    "of them."
)
LEGACY_FUNCTION = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)
FUNCTION_INSTANTIATED = (
    "{kind} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
    "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch."
)
SAVED_TYPE = "save_for_backward can only save variables, but argument {position} is of type {name}"
DIRTY_TYPE = "mark_dirty can only accept variables, but argument "  # PyTorch's own text ends here
NON_DIFFERENTIABLE_TYPE = "mark_non_differentiable only accepts variable arguments, but got "
DIRTY_NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
    "inplace must all be outputs of the Function."
)
DIRTY_NO_INPUT = (
    "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it "
    "to mark_dirty()."
)
DIRTY_VIEW_OF_SEVERAL = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
LEAF_WRITTEN = "a leaf Variable that requires grad has been used in an in-place operation."
TWICE_DIFFERENTIATED = "trying to differentiate twice a function that was marked with @once_differentiable"
SAVED_HOOKS_CALLABLE = (
    "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types are "
    "supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
    "Invoked with: {pack}, {unpack}"
)
PACK_IN_PLACE = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)
UNPACK_TYPE = "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {name}"
SAVED_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)
SAVED_NONE = "Calling register_hooks on a saved tensor with value None is forbidden"
SAVED_HOOKS_TWICE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
    "allowed at a time."
)
ANOMALY_ENABLED = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)
ANOMALY = "Error detected in {name}. "
ANOMALY_TRACE = "Traceback of forward call that caused the error:\n"
ANOMALY_NO_TRACE = (
    "No forward pass information available. Enable detect anomaly during forward pass for more information."
)
ANOMALY_PARENT = (
    "\n\nPrevious calculation was induced by {name}. Traceback of forward call that induced the previous calculation:\n"
)
NAN_GRADIENT = "Function '{name}' returned nan values in its {position}th output."
NO_EDGE = "It is not possible to get the gradient edge for a Tensor that does not require gradients"
NOT_IN_GRAPH = "Expected gradient function to be set"
HOOK_MODE = "Expects mode to be one of ('all', 'any') but got {mode}"
LEAF_OF_GRAD = (
    "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
    "currently not supported."
)
GRAD_OF_NON_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)
NO_MUTATION = (
    "gviz's built-in engine has no torch.autograd.graph.allow_mutation_on_saved_tensors; clone a tensor before writing "
    "to it if its old value is still needed"
)
VERSION_OF_TENSORS = "increment_version expect a Iterable[Tensor] as input"
VERSION_OF_EACH = "increment_version expects each element of the iterable to be a tensor"
HOOK_SIZE = "hook '{name}' has changed the size of value"
HOOK_TYPE = "expected Variable, but hook returned '{name}'"
HOOK_TUPLE = "expected tuple, but hook returned '{name}'"
HOOK_DTYPE = "hook '{name}' has changed the type of value (was torch.{was}Tensor got torch.{got}Tensor)"
HOOK_COUNT = "hook '{name}' has returned an incorrect number of values (got {got}, but expected {expected})"
HOOK_OF_NOTHING = "can't replace a None gradient with a non-None value"
HOOK_OF_NON_LEAF = "post accumulate grad hooks cannot be registered on non-leaf tensors"
ACCUMULATED_HOOK_RESULT = "Tensor post accumulate grad hooks should return None."
NOT_IMPLEMENTED = "derivative for aten::{name} is not implemented"
HOOK_NOT_SAVED = (
    "backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
    "@torch.utils.hooks.unserializable_hook to suppress this warning"
)
DEEPCOPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)
TO_SCALAR = "a Tensor with {size} elements cannot be converted to Scalar"
TO_NUMBER = "only one element tensors can be converted to Python scalars"
INDEX_OF_NUMBER = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
    "tensor to a number"
)
INVALID_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {kind})"
)
AMBIGUOUS_BOOL = "Boolean value of Tensor with {count} is ambiguous"
RESIZE = "cannot resize variables that require grad"
OUT_WITH_GRADIENT = (
    "{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
    "requires grad."
)
OUT_RESIZED = (
    "An output with one or more elements was resized since it had shape {before}, which does not match the required "
    "output shape {after}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
    "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
    "elements with t.resize_(0)."
)
OUT_DTYPE = "Expected out tensor to have dtype {source}, but got {target} instead"
RESULT_CAST = "result type {source} can't be cast to the desired output type {target}"
OUTPUT_SHAPE = "output with shape {own} doesn't match the broadcast shape {result}"
BROADCAST = "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"


MESHGRID = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
CHAIN_MATMUL = (
    "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
    "instead, which accepts a list of two or more tensors rather than multiple parameters."
)
SEARCH_WITH_GAPS = (
    "torch.searchsorted(): {name} tensor is non-contiguous, this will lower the performance due to extra data copy "
    "when converting non-contiguous tensor to contiguous, please use contiguous {name} tensor if possible. This "
    "message will only appear once per program."
)
COV_FREEDOM = "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
CROSS = (
    "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply "
    "use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future "
    "release."
)
ASARRAY = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
    "requires_grad=False explicitly to get the old behavior and silence this warning."
)
BETA = "{name}() is in beta and the API may change at any time."
SCATTER_REDUCE = (
    "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
    "release. Use torch.scatter_reduce instead for more reduction options."
)
EXPANDED_WRITE = (
    "Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
    "This also applies to advanced indexing e.g. {brackets}"
)
GRADIENT_LAYOUT = (
    "grad and param do not obey the gradient layout contract. This is not an error, but may impair performance.\n"
    "grad.sizes() = {shape}, strides() = {strides}\nparam.sizes() = {shape}, strides() = {own}"
)
CREATE_GRAPH = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)
ANOMALY_HINT = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
ANOMALY_SHOWS = (
    "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
    "question was changed in there or anywhere later. Good luck!"
)
_UNEXPLAINED = "  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
NO_GRADIENTS_TO_CLIP = "Expected !nested_tensorlist[0].empty() to be true, but got false." + _UNEXPLAINED
CHANCES = "Expected p_in >= 0 && p_in <= 1 to be true, but got false." + _UNEXPLAINED


always = False
"""Whether `warn_once` warns every time; ``set_warn_always`` sets it."""
_warned = set[str]()


def warn_once(text: str, kind: str = "") -> None:
    """Warns once per process, whatever the filters are, as PyTorch does for some warnings.

    Texts of one `kind` count as the same warning.
    """
    if always or (kind or text) not in _warned:
        _warned.add(kind or text)
        warn(text, UserWarning)


def modified_in_place(
    tensor_type: str, shape: tuple[int, ...], origin: str, version: int, expected: int, hint: str
) -> str:
    """The error for a saved tensor that was modified; `origin` is like ``output 0 of Add``, empty for a leaf."""
    which = f", which is {origin}," if origin else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type}Tensor {list(shape)}]{which} is at version {version}; expected version {expected} "
        f"instead. {hint}"
    )

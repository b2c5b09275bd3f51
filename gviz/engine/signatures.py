"""The signatures of PyTorch's functions, as ``kind? name=default``; alternatives are separated by ``|``.

A ``?`` allows None; ``ints+`` is a list of integers or one; a signature that PyTorch no longer lists starts with ``~``,
a deprecated one with ``!``.
"""

from __future__ import annotations

FUNCTIONS = {
    "abs": "Tensor input, *, Tensor? out=None",
    "absolute": "Tensor input, *, Tensor? out=None",
    "acos": "Tensor input, *, Tensor? out=None",
    "acosh": "Tensor input, *, Tensor? out=None",
    "adaptive_avg_pool1d": "Tensor input, ints+ output_size",
    "adaptive_max_pool1d": "Tensor input, ints+ output_size",
    "add": (
        "Tensor|Number input, Tensor|Number other, *, Number? alpha=1, Tensor? out=None | !Tensor|Number input, "
        "Number alpha, Tensor|Number other, *, Tensor? out=None"
    ),
    "addbmm": (
        "Tensor input, Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1, Tensor? out=None | !Number"
        " beta, Tensor input, Number alpha, Tensor batch1, Tensor batch2, *, Tensor? out=None | !Number beta, "
        "Tensor input, Tensor batch1, Tensor batch2, *, Tensor? out=None"
    ),
    "addcdiv": (
        "Tensor input, Tensor tensor1, Tensor tensor2, *, Number value=1, Tensor? out=None | !Tensor input, "
        "Number value, Tensor tensor1, Tensor tensor2, *, Tensor? out=None"
    ),
    "addcmul": (
        "Tensor input, Tensor tensor1, Tensor tensor2, *, Number value=1, Tensor? out=None | !Tensor input, "
        "Number value, Tensor tensor1, Tensor tensor2, *, Tensor? out=None"
    ),
    "addmm": (
        "Tensor input, Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1, Tensor? out=None | Tensor "
        "input, Tensor mat1, Tensor mat2, dtype out_dtype, *, Number beta=1, Number alpha=1, Tensor? out=None | "
        "!Number beta, Tensor input, Number alpha, Tensor mat1, Tensor mat2, *, Tensor? out=None | !Number beta, "
        "Tensor input, Tensor mat1, Tensor mat2, *, Tensor? out=None"
    ),
    "addmv": (
        "Tensor input, Tensor mat, Tensor vec, *, Number beta=1, Number alpha=1, Tensor? out=None | !Number beta,"
        " Tensor input, Number alpha, Tensor mat, Tensor vec, *, Tensor? out=None | !Number beta, Tensor input, "
        "Tensor mat, Tensor vec, *, Tensor? out=None"
    ),
    "addr": (
        "Tensor input, Tensor vec1, Tensor vec2, *, Number beta=1, Number alpha=1, Tensor? out=None | !Number "
        "beta, Tensor input, Number alpha, Tensor vec1, Tensor vec2, *, Tensor? out=None | !Number beta, Tensor "
        "input, Tensor vec1, Tensor vec2, *, Tensor? out=None"
    ),
    "adjoint": "Tensor input",
    "all": (
        "Tensor input, *, Tensor? out=None | Tensor input, ints? dim=None, bool keepdim=False, *, Tensor? out=None"
        " | Tensor input, int dim, bool keepdim=False, *, Tensor? out=None"
    ),
    "allclose": "Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False",
    "amax": "Tensor input, ints+ dim=(), bool keepdim=False, *, Tensor? out=None",
    "amin": "Tensor input, ints+ dim=(), bool keepdim=False, *, Tensor? out=None",
    "aminmax": "Tensor input, *, int? dim=None, bool keepdim=False, Tensors? out=None",
    "any": (
        "Tensor input, *, Tensor? out=None | Tensor input, ints? dim=None, bool keepdim=False, *, Tensor? out=None"
        " | Tensor input, int dim, bool keepdim=False, *, Tensor? out=None"
    ),
    "arange": (
        "Number end, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False | Number start, Number end, *, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False | Number start, Number "
        "end, Number step=1, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False | Number start, Number end, Number step, *, Tensor? out=None,"
        " dtype? dtype=None, any? device=None, bool requires_grad=False, bool pin_memory=False | Number start, "
        "Number end, *, Tensor? out=None, dtype? dtype=None, any? device=None, bool requires_grad=False, bool "
        "pin_memory=False | Number end, *, Tensor? out=None, dtype? dtype=None, any? device=None, bool "
        "requires_grad=False, bool pin_memory=False"
    ),
    "arccos": "Tensor input, *, Tensor? out=None",
    "arccosh": "Tensor input, *, Tensor? out=None",
    "arcsin": "Tensor input, *, Tensor? out=None",
    "arcsinh": "Tensor input, *, Tensor? out=None",
    "arctan": "Tensor input, *, Tensor? out=None",
    "arctan2": "Tensor input, Tensor other, *, Tensor? out=None",
    "arctanh": "Tensor input, *, Tensor? out=None",
    "argmax": "Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None",
    "argmin": "Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None",
    "argsort": (
        "Tensor input, *, bool stable, int dim=-1, bool descending=False, Tensor? out=None | Tensor input, int "
        "dim=-1, bool descending=False"
    ),
    "argwhere": "Tensor input",
    "as_strided": "Tensor input, ints size, ints stride, int? storage_offset=None",
    "as_tensor": "any data, dtype? dtype=None, any? device=None",
    "asarray": "any obj, *, dtype? dtype=None, any? device=None, bool? copy=None, bool? requires_grad=None",
    "asin": "Tensor input, *, Tensor? out=None",
    "asinh": "Tensor input, *, Tensor? out=None",
    "atan": "Tensor input, *, Tensor? out=None",
    "atan2": "Tensor input, Tensor other, *, Tensor? out=None",
    "atanh": "Tensor input, *, Tensor? out=None",
    "avg_pool1d": (
        "Tensor input, ints+ kernel_size, ints+ stride=(), ints+ padding=0, bool ceil_mode=False, bool "
        "count_include_pad=True"
    ),
    "baddbmm": (
        "Tensor input, Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1, Tensor? out=None | Tensor "
        "input, Tensor batch1, Tensor batch2, dtype out_dtype, *, Number beta=1, Number alpha=1, Tensor? out=None"
        " | !Number beta, Tensor input, Number alpha, Tensor batch1, Tensor batch2, *, Tensor? out=None | !Number"
        " beta, Tensor input, Tensor batch1, Tensor batch2, *, Tensor? out=None"
    ),
    "batch_norm": (
        "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
        "float momentum, float eps, bool cudnn_enabled"
    ),
    "bernoulli": (
        "Tensor input, *, Generator? generator=None, Tensor? out=None | Tensor input, float p, *, Generator? "
        "generator=None"
    ),
    "bilinear": "Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None",
    "bincount": "Tensor input, Tensor? weights=None, int minlength=0",
    "bitwise_and": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None | "
        "~Number input, Tensor other"
    ),
    "bitwise_left_shift": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None | "
        "~Number input, Tensor other"
    ),
    "bitwise_not": "Tensor input, *, Tensor? out=None",
    "bitwise_or": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None | "
        "~Number input, Tensor other"
    ),
    "bitwise_right_shift": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None | "
        "~Number input, Tensor other"
    ),
    "bitwise_xor": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None | "
        "~Number input, Tensor other"
    ),
    "bmm": (
        "Tensor input, Tensor mat2, *, Tensor? out=None | Tensor input, Tensor mat2, dtype out_dtype, *, Tensor? "
        "out=None"
    ),
    "broadcast_to": "Tensor input, ints size",
    "bucketize": (
        "Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor? out=None | ~Number "
        "input, Tensor boundaries, *, bool out_int32=False, bool right=False"
    ),
    "can_cast": "dtype from_, dtype to",
    "cat": "Tensors tensors, int dim=0, *, Tensor? out=None",
    "ceil": "Tensor input, *, Tensor? out=None",
    "celu": "Tensor input, Number alpha=1.0",
    "channel_shuffle": "Tensor input, int groups",
    "cholesky": "Tensor input, bool upper=False, *, Tensor? out=None",
    "cholesky_solve": "Tensor input, Tensor input2, bool upper=False, *, Tensor? out=None",
    "chunk": "Tensor input, int chunks, int dim=0",
    "clamp": (
        "Tensor input, Tensor? min=None, Tensor? max=None, *, Tensor? out=None | Tensor input, Number? min=None, "
        "Number? max=None, *, Tensor? out=None"
    ),
    "clamp_max": "Tensor input, Tensor max, *, Tensor? out=None | Tensor input, Number max, *, Tensor? out=None",
    "clamp_min": "Tensor input, Tensor min, *, Tensor? out=None | Tensor input, Number min, *, Tensor? out=None",
    "clip": (
        "Tensor input, Tensor? min=None, Tensor? max=None, *, Tensor? out=None | Tensor input, Number? min=None, "
        "Number? max=None, *, Tensor? out=None"
    ),
    "clone": "Tensor input, *, any? memory_format=None",
    "column_stack": "Tensors tensors, *, Tensor? out=None",
    "combinations": "Tensor input, int r=2, bool with_replacement=False",
    "concat": "Tensors tensors, int dim=0, *, Tensor? out=None",
    "concatenate": "Tensors tensors, int dim=0, *, Tensor? out=None",
    "conj": "Tensor input",
    "constant_pad_nd": "Tensor input, ints pad, Number value=0",
    "conv1d": (
        "Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, ints+ padding=0, ints+ dilation=1, int "
        "groups=1 | Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, str padding='valid', ints+ "
        "dilation=1, int groups=1"
    ),
    "conv2d": (
        "Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, ints+ padding=0, ints+ dilation=1, int "
        "groups=1 | Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, str padding='valid', ints+ "
        "dilation=1, int groups=1"
    ),
    "conv3d": (
        "Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, ints+ padding=0, ints+ dilation=1, int "
        "groups=1 | Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, str padding='valid', ints+ "
        "dilation=1, int groups=1"
    ),
    "conv_transpose1d": (
        "Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, ints+ padding=0, ints+ output_padding=0, "
        "int groups=1, ints+ dilation=1"
    ),
    "conv_transpose2d": (
        "Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, ints+ padding=0, ints+ output_padding=0, "
        "int groups=1, ints+ dilation=1"
    ),
    "conv_transpose3d": (
        "Tensor input, Tensor weight, Tensor? bias=None, ints+ stride=1, ints+ padding=0, ints+ output_padding=0, "
        "int groups=1, ints+ dilation=1"
    ),
    "convolution": (
        "Tensor input, Tensor weight, Tensor? bias, ints stride, ints padding, ints dilation, bool transposed, "
        "ints output_padding, int groups"
    ),
    "copysign": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "corrcoef": "Tensor input",
    "cos": "Tensor input, *, Tensor? out=None",
    "cosh": "Tensor input, *, Tensor? out=None",
    "cosine_embedding_loss": "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1",
    "cosine_similarity": "Tensor x1, Tensor x2, int dim=1, float eps=1e-08",
    "count_nonzero": "Tensor input, int? dim=None | Tensor input, ints dim",
    "cov": "Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None",
    "cross": "Tensor input, Tensor other, int? dim=None, *, Tensor? out=None",
    "cummax": "Tensor input, int dim, *, Tensors? out=None",
    "cummin": "Tensor input, int dim, *, Tensors? out=None",
    "cumprod": "Tensor input, int dim, *, dtype? dtype=None, Tensor? out=None",
    "cumsum": "Tensor input, int dim, *, dtype? dtype=None, Tensor? out=None",
    "cumulative_trapezoid": "Tensor y, Tensor x, *, int dim=-1 | Tensor y, *, Number dx=1, int dim=-1",
    "deg2rad": "Tensor input, *, Tensor? out=None",
    "det": "Tensor input",
    "detach": "Tensor input",
    "diag": "Tensor input, int diagonal=0, *, Tensor? out=None",
    "diag_embed": "Tensor input, int offset=0, int dim1=-2, int dim2=-1",
    "diagflat": "Tensor input, int offset=0",
    "diagonal": "Tensor input, int offset=0, int dim1=0, int dim2=1",
    "diagonal_copy": "Tensor input, int offset=0, int dim1=0, int dim2=1, *, Tensor? out=None",
    "diagonal_scatter": "Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1",
    "diff": "Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, Tensor? out=None",
    "digamma": "Tensor input, *, Tensor? out=None",
    "dist": "Tensor input, Tensor other, Number p=2",
    "div": "Tensor|Number input, Tensor|Number other, *, str? rounding_mode=None, Tensor? out=None",
    "divide": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Tensor other, *, str? rounding_mode, "
        "Tensor? out=None | Tensor input, Number other | Tensor input, Number other, *, str? rounding_mode"
    ),
    "dot": "Tensor input, Tensor tensor, *, Tensor? out=None",
    "dropout": "Tensor input, float p, bool train",
    "dropout_": "Tensor input, float p, bool train",
    "dsplit": "Tensor input, int sections | Tensor input, ints indices",
    "dstack": "Tensors tensors, *, Tensor? out=None",
    "embedding": "Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False",
    "empty": (
        "ints size, *, any? memory_format=None, Tensor? out=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "empty_like": (
        "Tensor input, *, any? memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "eq": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "equal": "Tensor input, Tensor other",
    "erf": "Tensor input, *, Tensor? out=None",
    "erfc": "Tensor input, *, Tensor? out=None",
    "erfinv": "Tensor input, *, Tensor? out=None",
    "exp": "Tensor input, *, Tensor? out=None",
    "exp2": "Tensor input, *, Tensor? out=None",
    "expm1": "Tensor input, *, Tensor? out=None",
    "eye": (
        "int n, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False | int n, int m, *, Tensor? out=None, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "feature_dropout": "Tensor input, float p, bool train",
    "fix": "Tensor input, *, Tensor? out=None",
    "flatten": "Tensor input, int start_dim=0, int end_dim=-1",
    "flip": "Tensor input, ints dims",
    "fliplr": "Tensor input",
    "flipud": "Tensor input",
    "float_power": (
        "Tensor input, Tensor exponent, *, Tensor? out=None | ~Number input, Tensor exponent, *, Tensor? out=None "
        "| Tensor input, Number exponent, *, Tensor? out=None"
    ),
    "floor": "Tensor input, *, Tensor? out=None",
    "floor_divide": "Tensor|Number input, Tensor|Number other, *, Tensor? out=None",
    "fmax": "Tensor input, Tensor other, *, Tensor? out=None",
    "fmin": "Tensor input, Tensor other, *, Tensor? out=None",
    "fmod": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "frac": "Tensor input, *, Tensor? out=None",
    "from_numpy": "any ndarray",
    "full": (
        "ints size, Number fill_value, *, Tensor? out=None, any layout=strided, dtype? dtype=None, any? "
        "device=None, bool requires_grad=False, bool pin_memory=False | ints size, Number fill_value, *, any "
        "names, any layout=strided, dtype? dtype=None, any? device=None, bool requires_grad=False, bool "
        "pin_memory=False | ints size, Number fill_value, *, Tensor? out=None, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "full_like": (
        "Tensor input, Number fill_value, *, any? memory_format=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "gather": "Tensor input, int dim, Tensor index, *, bool sparse_grad=False, Tensor? out=None",
    "ge": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "ger": "Tensor input, Tensor vec2, *, Tensor? out=None",
    "get_default_dtype": "",
    "get_num_interop_threads": "",
    "get_num_threads": "",
    "get_device": "Tensor input",
    "greater": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "greater_equal": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None"
    ),
    "group_norm": (
        "Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True"
    ),
    "gru": (
        "Tensor data, Tensor batch_sizes, Tensor hx, Tensors params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional | Tensor input, Tensor hx, Tensors params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
    ),
    "gru_cell": "Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None",
    "gt": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "hardshrink": "Tensor input, Number lambd=0.5, *, Tensor? out=None",
    "heaviside": "Tensor input, Tensor values, *, Tensor? out=None",
    "hinge_embedding_loss": "Tensor input, Tensor target, float margin=1.0, int reduction=1",
    "histc": "Tensor input, int bins=100, Number min=0, Number max=0, *, Tensor? out=None",
    "hsplit": "Tensor input, int sections | Tensor input, ints indices",
    "hstack": "Tensors tensors, *, Tensor? out=None",
    "hypot": "Tensor input, Tensor other, *, Tensor? out=None",
    "imag": "Tensor input",
    "index_add": "Tensor input, int dim, Tensor index, Tensor source, *, Number alpha=1, Tensor? out=None",
    "index_copy": "Tensor input, int dim, Tensor index, Tensor source, *, Tensor? out=None",
    "index_fill": (
        "Tensor input, int dim, Tensor index, Tensor value | Tensor input, int dim, Tensor index, Number value"
    ),
    "index_put": "Tensor input, Tensors? indices, Tensor values, bool accumulate=False",
    "index_select": "Tensor input, int dim, Tensor index, *, Tensor? out=None",
    "inner": "Tensor input, Tensor other, *, Tensor? out=None",
    "inverse": "Tensor input, *, Tensor? out=None",
    "is_complex": "Tensor input",
    "is_conj": "Tensor input",
    "is_floating_point": "Tensor input",
    "is_grad_enabled": "",
    "is_inference": "Tensor input",
    "is_inference_mode_enabled": "",
    "is_neg": "Tensor input",
    "is_nonzero": "Tensor input",
    "is_same_size": "Tensor input, Tensor other",
    "is_signed": "Tensor input",
    "isclose": "Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False",
    "isfinite": "Tensor input",
    "isin": (
        "Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False, Tensor? out=None |"
        " Number element, Tensor test_elements, *, bool assume_unique=False, bool invert=False, Tensor? out=None |"
        " Tensor elements, Number test_element, *, bool assume_unique=False, bool invert=False, Tensor? out=None"
    ),
    "isinf": "Tensor input",
    "isnan": "Tensor input",
    "isneginf": "Tensor input, *, Tensor? out=None",
    "isposinf": "Tensor input, *, Tensor? out=None",
    "isreal": "Tensor input",
    "kron": "Tensor input, Tensor other, *, Tensor? out=None",
    "kthvalue": "Tensor input, int k, int dim=-1, bool keepdim=False, *, Tensors? out=None",
    "layer_norm": (
        "Tensor input, ints normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
        "cudnn_enable=True"
    ),
    "ldexp": "Tensor input, Tensor other, *, Tensor? out=None",
    "le": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "lerp": (
        "Tensor input, Tensor end, Tensor weight, *, Tensor? out=None | Tensor input, Tensor end, Number weight, "
        "*, Tensor? out=None"
    ),
    "less": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "less_equal": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "lgamma": "Tensor input, *, Tensor? out=None",
    "linspace": (
        "Tensor start, Tensor end, int steps, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False | Number start, Tensor end, int steps, *, "
        "Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False | Tensor start, Number end, int steps, *, Tensor? out=None, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False | Number start, Number "
        "end, int steps, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False | Number start, Number end, int? steps=None, *, Tensor? "
        "out=None, dtype? dtype=None, any? device=None, bool requires_grad=False, bool pin_memory=False"
    ),
    "log": "Tensor input, *, Tensor? out=None",
    "log10": "Tensor input, *, Tensor? out=None",
    "log1p": "Tensor input, *, Tensor? out=None",
    "log2": "Tensor input, *, Tensor? out=None",
    "log_softmax": "Tensor input, int dim, dtype? dtype=None, *, Tensor? out=None",
    "logaddexp": "Tensor input, Tensor other, *, Tensor? out=None",
    "logaddexp2": "Tensor input, Tensor other, *, Tensor? out=None",
    "logcumsumexp": "Tensor input, int dim, *, Tensor? out=None",
    "logdet": "Tensor input",
    "logical_and": "Tensor input, Tensor other, *, Tensor? out=None",
    "logical_not": "Tensor input, *, Tensor? out=None",
    "logical_or": "Tensor input, Tensor other, *, Tensor? out=None",
    "logical_xor": "Tensor input, Tensor other, *, Tensor? out=None",
    "logit": "Tensor input, float? eps=None, *, Tensor? out=None",
    "logspace": (
        "Tensor start, Tensor end, int steps, float base=10.0, *, Tensor? out=None, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False | Number start, Tensor "
        "end, int steps, float base=10.0, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False | Tensor start, Number end, int steps, "
        "float base=10.0, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False | Number start, Number end, int steps, float base=10.0, *, "
        "Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False | Number start, Number end, int? steps=None, float base=10.0, *, Tensor? out=None, "
        "dtype? dtype=None, any? device=None, bool requires_grad=False, bool pin_memory=False"
    ),
    "logsumexp": "Tensor input, ints+ dim, bool keepdim=False, *, Tensor? out=None",
    "lstm": (
        "Tensor data, Tensor batch_sizes, Tensors hx, Tensors params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional | Tensor input, Tensors hx, Tensors params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
    ),
    "lstm_cell": "Tensor input, Tensors hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None",
    "lt": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "margin_ranking_loss": "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1",
    "masked_fill": "Tensor input, Tensor mask, Tensor value | Tensor input, Tensor mask, Number value",
    "masked_scatter": "Tensor input, Tensor mask, Tensor source",
    "masked_select": "Tensor input, Tensor mask, *, Tensor? out=None",
    "matmul": "Tensor input, Tensor other, *, Tensor? out=None",
    "matrix_exp": "Tensor input",
    "matrix_power": "Tensor input, int n, *, Tensor? out=None",
    "max": (
        "Tensor input, *, Tensor? out=None | Tensor input, Tensor other, *, Tensor? out=None | Tensor input, int "
        "dim, bool keepdim=False, *, Tensors? out=None"
    ),
    "max_pool1d": (
        "Tensor input, ints+ kernel_size, ints+ stride=(), ints+ padding=0, ints+ dilation=1, bool ceil_mode=False"
    ),
    "max_pool2d": (
        "Tensor input, ints+ kernel_size, ints+ stride=(), ints+ padding=0, ints+ dilation=1, bool ceil_mode=False"
    ),
    "max_pool3d": (
        "Tensor input, ints+ kernel_size, ints+ stride=(), ints+ padding=0, ints+ dilation=1, bool ceil_mode=False"
    ),
    "maximum": "Tensor input, Tensor other, *, Tensor? out=None",
    "mean": (
        "Tensor input, *, dtype? dtype=None, Tensor? out=None | Tensor input, ints+? dim, bool keepdim=False, *, "
        "dtype? dtype=None, Tensor? out=None"
    ),
    "median": "Tensor input | Tensor input, int dim, bool keepdim=False, *, Tensors? out=None",
    "min": (
        "Tensor input, *, Tensor? out=None | Tensor input, Tensor other, *, Tensor? out=None | Tensor input, int "
        "dim, bool keepdim=False, *, Tensors? out=None"
    ),
    "minimum": "Tensor input, Tensor other, *, Tensor? out=None",
    "mm": (
        "Tensor input, Tensor mat2, *, Tensor? out=None | Tensor input, Tensor mat2, dtype out_dtype, *, Tensor? "
        "out=None"
    ),
    "mode": "Tensor input, int dim=-1, bool keepdim=False, *, Tensors? out=None",
    "moveaxis": "Tensor input, int source, int destination | Tensor input, ints source, ints destination",
    "movedim": "Tensor input, int source, int destination | Tensor input, ints source, ints destination",
    "msort": "Tensor input, *, Tensor? out=None",
    "mul": "Tensor|Number input, Tensor|Number other, *, Tensor? out=None",
    "multinomial": (
        "Tensor input, int num_samples, bool replacement=False, *, Generator? generator=None, Tensor? out=None"
    ),
    "multiply": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other",
    "mv": "Tensor input, Tensor vec, *, Tensor? out=None",
    "nan_to_num": "Tensor input, float? nan=None, float? posinf=None, float? neginf=None, *, Tensor? out=None",
    "nanmean": "Tensor input, ints+? dim=None, bool keepdim=False, *, dtype? dtype=None, Tensor? out=None",
    "nanmedian": "Tensor input | Tensor input, int dim, bool keepdim=False, *, Tensors? out=None",
    "nanquantile": (
        "Tensor input, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear', Tensor? "
        "out=None | Tensor input, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear', "
        "Tensor? out=None"
    ),
    "nansum": "Tensor input, ints+? dim=None, bool keepdim=False, *, dtype? dtype=None, Tensor? out=None",
    "narrow": "Tensor input, int dim, Tensor start, int length | Tensor input, int dim, int start, int length",
    "ne": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "neg": "Tensor input, *, Tensor? out=None",
    "negative": "Tensor input, *, Tensor? out=None",
    "nonzero": "Tensor input, *, any as_tuple=False, Tensor? out=None | Tensor input, *, any as_tuple",
    "normal": (
        "Tensor mean, Tensor std, *, Generator? generator=None, Tensor? out=None | Tensor mean, float std=1, *, "
        "Generator? generator=None, Tensor? out=None | float mean, Tensor std, *, Generator? generator=None, "
        "Tensor? out=None | float mean, float std, ints size, *, Generator? generator=None, Tensor? out=None, "
        "dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "not_equal": "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None",
    "numel": "~Tensor input",
    "ones": (
        "ints size, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "ones_like": (
        "Tensor input, *, any? memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "outer": "Tensor input, Tensor vec2, *, Tensor? out=None",
    "pairwise_distance": "Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False",
    "permute": "Tensor input, ints dims",
    "pinverse": "Tensor input, float rcond=1e-15",
    "pixel_shuffle": "Tensor input, int upscale_factor",
    "pixel_unshuffle": "Tensor input, int downscale_factor",
    "poisson": "Tensor input, Generator? generator=None",
    "polygamma": "int n, Tensor input, *, Tensor? out=None",
    "positive": "Tensor input",
    "pow": (
        "Tensor input, Tensor exponent, *, Tensor? out=None | ~Number input, Tensor exponent, *, Tensor? out=None "
        "| Tensor input, Number exponent, *, Tensor? out=None"
    ),
    "prelu": "Tensor input, Tensor weight",
    "prod": (
        "Tensor input, *, dtype? dtype=None | Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None, "
        "Tensor? out=None"
    ),
    "promote_types": "dtype type1, dtype type2",
    "put": "Tensor input, Tensor index, Tensor source, bool accumulate=False",
    "qr": "Tensor input, bool some=True, *, Tensors? out=None",
    "quantile": (
        "Tensor input, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear', Tensor? "
        "out=None | Tensor input, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear', "
        "Tensor? out=None"
    ),
    "rad2deg": "Tensor input, *, Tensor? out=None",
    "rand": (
        "ints size, *, Generator? generator, Tensor? out=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False | ints size, *, Tensor? out=None, dtype? "
        "dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "rand_like": (
        "Tensor input, *, Generator? generator, any? memory_format=None, dtype? dtype=None, any? layout=None, any?"
        " device=None, bool? pin_memory=False, bool? requires_grad=False | Tensor input, *, any? "
        "memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "randint": (
        "int high, ints size, *, Generator? generator, Tensor? out=None, dtype? dtype=None, any? layout=None, any?"
        " device=None, bool? pin_memory=False, bool? requires_grad=False | int high, ints size, *, Tensor? "
        "out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False | int low, int high, ints size, *, Generator? generator, Tensor? out=None, dtype? "
        "dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False | int "
        "low, int high, ints size, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, "
        "bool? pin_memory=False, bool? requires_grad=False | int low, int high, ints size, *, Generator? "
        "generator=None, dtype? dtype=None, any? device=None, bool requires_grad=False, bool pin_memory=False | "
        "int high, ints size, *, Generator? generator=None, dtype? dtype=None, any? device=None, bool "
        "requires_grad=False, bool pin_memory=False"
    ),
    "randint_like": (
        "Tensor input, int low, int high, *, Generator? generator, any? memory_format=None, dtype? dtype=None, "
        "any? layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False | Tensor input, int"
        " low, int high, *, any? memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False | Tensor input, Tensor high, *, Generator? generator, any? "
        "memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False | Tensor input, Tensor high, *, any? memory_format=None, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False | Tensor input, int "
        "high, *, Generator? generator, any? memory_format=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False | Tensor input, int high, *, any? "
        "memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "randn": (
        "ints size, *, Generator? generator, Tensor? out=None, dtype? dtype=None, any? layout=None, any? "
        "device=None, bool? pin_memory=False, bool? requires_grad=False | ints size, *, Tensor? out=None, dtype? "
        "dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "randn_like": (
        "Tensor input, *, Generator? generator, any? memory_format=None, dtype? dtype=None, any? layout=None, any?"
        " device=None, bool? pin_memory=False, bool? requires_grad=False | Tensor input, *, any? "
        "memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "randperm": (
        "int n, *, Generator? generator, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, "
        "bool? pin_memory=False, bool? requires_grad=False | int n, *, Tensor? out=None, dtype? dtype=None, any? "
        "layout=None, any? device=None, bool? pin_memory=False, bool? requires_grad=False"
    ),
    "range": (
        "Number start, Number end, Number step=1, *, Tensor? out=None, dtype? dtype=None, any? device=None, bool "
        "requires_grad=False, bool pin_memory=False"
    ),
    "ravel": "Tensor input",
    "real": "Tensor input",
    "reciprocal": "Tensor input, *, Tensor? out=None",
    "relu": "Tensor input",
    "remainder": (
        "Tensor input, Tensor other, *, Tensor? out=None | Tensor input, Number other, *, Tensor? out=None | "
        "~Number input, Tensor other"
    ),
    "repeat_interleave": (
        "Tensor input, Tensor repeats, int? dim=None, *, int? output_size=None | Tensor repeats, *, int? "
        "output_size=None | Tensor input, int repeats, int? dim=None, *, int? output_size=None"
    ),
    "reshape": "Tensor input, ints shape",
    "resolve_conj": "Tensor input",
    "resolve_neg": "Tensor input",
    "result_type": (
        "Tensor tensor, Tensor other | Number scalar, Tensor tensor | Tensor tensor, Number other | Number "
        "scalar1, Number scalar2"
    ),
    "rms_norm": "Tensor input, ints normalized_shape, Tensor? weight=None, float? eps=None",
    "rnn_relu": (
        "Tensor data, Tensor batch_sizes, Tensor hx, Tensors params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional | Tensor input, Tensor hx, Tensors params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
    ),
    "rnn_relu_cell": "Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None",
    "rnn_tanh": (
        "Tensor data, Tensor batch_sizes, Tensor hx, Tensors params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional | Tensor input, Tensor hx, Tensors params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
    ),
    "rnn_tanh_cell": "Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None",
    "roll": "Tensor input, ints+ shifts, ints+ dims=()",
    "rot90": "Tensor input, int k=1, ints dims=(0,1)",
    "round": "Tensor input, *, Tensor? out=None | Tensor input, *, int decimals, Tensor? out=None",
    "row_stack": "Tensors tensors, *, Tensor? out=None",
    "rrelu": (
        "Tensor input, Number lower=0.125, Number upper=0.3333333333333333, bool training=False, Generator? "
        "generator=None"
    ),
    "rsqrt": "Tensor input, *, Tensor? out=None",
    "rsub": "Tensor input, Tensor other, *, Number alpha=1 | Tensor input, Number other, Number alpha=1",
    "scalar_tensor": (
        "Number s, *, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "scatter": (
        "Tensor input, int dim, Tensor index, Tensor src, *, Tensor? out=None | Tensor input, int dim, Tensor "
        "index, Tensor src, *, str reduce, Tensor? out=None | Tensor input, int dim, Tensor index, Number value, "
        "*, Tensor? out=None | Tensor input, int dim, Tensor index, Number value, *, str reduce, Tensor? out=None"
    ),
    "scatter_add": "Tensor input, int dim, Tensor index, Tensor src, *, Tensor? out=None",
    "scatter_reduce": (
        "Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, Tensor? out=None"
    ),
    "searchsorted": (
        "Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str? side=None, Tensor? "
        "sorter=None, Tensor? out=None | Tensor sorted_sequence, Number input, *, bool out_int32=False, bool "
        "right=False, str? side=None, Tensor? sorter=None, Tensor? out=None"
    ),
    "select": "Tensor input, int dim, int index",
    "select_scatter": "Tensor input, Tensor src, int dim, int index",
    "selu": "Tensor input",
    "set_flush_denormal": "bool mode",
    "set_num_interop_threads": "int num",
    "set_num_threads": "int num",
    "sgn": "Tensor input, *, Tensor? out=None",
    "sigmoid": "Tensor input, *, Tensor? out=None",
    "sign": "Tensor input, *, Tensor? out=None",
    "signbit": "Tensor input, *, Tensor? out=None",
    "sin": "Tensor input, *, Tensor? out=None",
    "sinc": "Tensor input, *, Tensor? out=None",
    "sinh": "Tensor input, *, Tensor? out=None",
    "slice_scatter": (
        "Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, int step=1, *, Tensor? out=None"
    ),
    "slogdet": "Tensor input, *, Tensors? out=None",
    "softmax": "Tensor input, int dim, dtype? dtype=None, *, Tensor? out=None",
    "sort": (
        "Tensor input, *, bool? stable, int dim=-1, bool descending=False, Tensors? out=None | Tensor input, int "
        "dim=-1, bool descending=False, *, Tensors? out=None"
    ),
    "split_with_sizes": "Tensor input, ints split_sizes, int dim=0",
    "sqrt": "Tensor input, *, Tensor? out=None",
    "square": "Tensor input, *, Tensor? out=None",
    "squeeze": "Tensor input | Tensor input, int dim | Tensor input, ints dim",
    "stack": "Tensors tensors, int dim=0, *, Tensor? out=None",
    "std": (
        "Tensor input, ints+? dim, bool unbiased=True, bool keepdim=False, *, Tensor? out=None | Tensor input, "
        "ints+? dim=None, *, Number? correction=None, bool keepdim=False, Tensor? out=None | Tensor input, bool "
        "unbiased=True"
    ),
    "std_mean": (
        "Tensor input, ints+? dim, bool unbiased=True, bool keepdim=False | Tensor input, ints+? dim=None, *, "
        "Number? correction=None, bool keepdim=False | Tensor input, bool unbiased=True"
    ),
    "sub": (
        "Tensor|Number input, Tensor|Number other, *, Number? alpha=1, Tensor? out=None | !Tensor|Number input, "
        "Number alpha, Tensor|Number other, *, Tensor? out=None"
    ),
    "subtract": (
        "Tensor input, Tensor other, *, Number alpha=1, Tensor? out=None | Tensor input, Number other, Number alpha=1"
    ),
    "sum": (
        "Tensor input, *, dtype? dtype=None | Tensor input, ints+? dim, bool keepdim=False, *, dtype? dtype=None, "
        "Tensor? out=None"
    ),
    "svd": "Tensor input, bool some=True, bool compute_uv=True, *, Tensors? out=None",
    "swapaxes": "Tensor input, int axis0, int axis1",
    "swapdims": "Tensor input, int dim0, int dim1",
    "t": "Tensor input",
    "take": "Tensor input, Tensor index, *, Tensor? out=None",
    "take_along_dim": "Tensor input, Tensor indices, int? dim=None, *, Tensor? out=None",
    "tan": "Tensor input, *, Tensor? out=None",
    "tanh": "Tensor input, *, Tensor? out=None",
    "tensor": "any data, dtype? dtype=None, any? device=None, bool requires_grad=False, bool pin_memory=False",
    "tensor_split": (
        "Tensor input, ints indices, int dim=0 | Tensor input, Tensor tensor_indices_or_sections, int dim=0 | "
        "Tensor input, int sections, int dim=0"
    ),
    "threshold": "Tensor input, Number threshold, Number value, *, Tensor? out=None",
    "tile": "Tensor input, ints dims",
    "topk": "Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True, *, Tensors? out=None",
    "trace": "Tensor input",
    "transpose": "Tensor input, int dim0, int dim1",
    "trapezoid": "Tensor y, Tensor x, *, int dim=-1 | Tensor y, *, Number dx=1, int dim=-1",
    "trapz": "Tensor y, *, float dx=1, int dim=-1 | Tensor y, Tensor x, *, int dim=-1",
    "tril": "Tensor input, int diagonal=0, *, Tensor? out=None",
    "tril_indices": (
        "int row, int col, int offset=0, *, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "triplet_margin_loss": (
        "Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool "
        "swap=False, int reduction=1"
    ),
    "triu": "Tensor input, int diagonal=0, *, Tensor? out=None",
    "triu_indices": (
        "int row, int col, int offset=0, *, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "true_divide": "Tensor|Number input, Tensor|Number other, *, Tensor? out=None",
    "trunc": "Tensor input, *, Tensor? out=None",
    "unbind": "Tensor input, int dim=0",
    "unflatten": "Tensor input, int dim, ints sizes",
    "unsqueeze": "Tensor input, int dim",
    "var": (
        "Tensor input, ints+? dim, bool unbiased=True, bool keepdim=False, *, Tensor? out=None | Tensor input, "
        "ints+? dim=None, *, Number? correction=None, bool keepdim=False, Tensor? out=None | Tensor input, bool "
        "unbiased=True"
    ),
    "var_mean": (
        "Tensor input, ints+? dim, bool unbiased=True, bool keepdim=False | Tensor input, ints+? dim=None, *, "
        "Number? correction=None, bool keepdim=False | Tensor input, bool unbiased=True"
    ),
    "vdot": "Tensor input, Tensor other, *, Tensor? out=None",
    "vsplit": "Tensor input, int sections | Tensor input, ints indices",
    "vstack": "Tensors tensors, *, Tensor? out=None",
    "where": (
        "Tensor condition | Tensor condition, Tensor input, Tensor other, *, Tensor? out=None | Tensor condition, "
        "Number input, Tensor other | Tensor condition, Tensor input, Number other | Tensor condition, Number "
        "input, Number other"
    ),
    "xlogy": (
        "Tensor input, Tensor other, *, Tensor? out=None | ~Number input, Tensor other, *, Tensor? out=None | "
        "Tensor input, Number other, *, Tensor? out=None"
    ),
    "zeros": (
        "ints size, *, Tensor? out=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "zeros_like": (
        "Tensor input, *, any? memory_format=None, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
}
"""Functions of ``torch``."""

METHODS = {
    "_is_view": "",
    "abs": "",
    "abs_": "",
    "absolute": "",
    "absolute_": "",
    "acos": "",
    "acos_": "",
    "acosh": "",
    "acosh_": "",
    "add": "Tensor|Number other, *, Number? alpha=1 | !Number alpha, Tensor|Number other",
    "add_": "Tensor|Number other, *, Number? alpha=1 | !Number alpha, Tensor|Number other",
    "addbmm": (
        "Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor "
        "batch1, Tensor batch2 | !Number beta, Tensor batch1, Tensor batch2"
    ),
    "addbmm_": (
        "Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor "
        "batch1, Tensor batch2 | !Number beta, Tensor batch1, Tensor batch2"
    ),
    "addcdiv": "Tensor tensor1, Tensor tensor2, *, Number value=1 | !Number value, Tensor tensor1, Tensor tensor2",
    "addcdiv_": "Tensor tensor1, Tensor tensor2, *, Number value=1 | !Number value, Tensor tensor1, Tensor tensor2",
    "addcmul": "Tensor tensor1, Tensor tensor2, *, Number value=1 | !Number value, Tensor tensor1, Tensor tensor2",
    "addcmul_": "Tensor tensor1, Tensor tensor2, *, Number value=1 | !Number value, Tensor tensor1, Tensor tensor2",
    "addmm": (
        "Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor mat1, "
        "Tensor mat2 | !Number beta, Tensor mat1, Tensor mat2"
    ),
    "addmm_": (
        "Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor mat1, "
        "Tensor mat2 | !Number beta, Tensor mat1, Tensor mat2"
    ),
    "addmv": (
        "Tensor mat, Tensor vec, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor mat, "
        "Tensor vec | !Number beta, Tensor mat, Tensor vec"
    ),
    "addmv_": (
        "Tensor mat, Tensor vec, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor mat, "
        "Tensor vec | !Number beta, Tensor mat, Tensor vec"
    ),
    "addr": (
        "Tensor vec1, Tensor vec2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor vec1, "
        "Tensor vec2 | !Number beta, Tensor vec1, Tensor vec2"
    ),
    "addr_": (
        "Tensor vec1, Tensor vec2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor vec1, "
        "Tensor vec2 | !Number beta, Tensor vec1, Tensor vec2"
    ),
    "adjoint": "",
    "all": " | ints? dim=None, bool keepdim=False | int dim, bool keepdim=False",
    "allclose": "Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False",
    "amax": "ints+ dim=(), bool keepdim=False",
    "amin": "ints+ dim=(), bool keepdim=False",
    "aminmax": "*, int? dim=None, bool keepdim=False",
    "angle": "",
    "any": " | ints? dim=None, bool keepdim=False | int dim, bool keepdim=False",
    "apply_": "any callable",
    "arccos": "",
    "arccos_": "",
    "arccosh": "",
    "arccosh_": "",
    "arcsin": "",
    "arcsin_": "",
    "arcsinh": "",
    "arcsinh_": "",
    "arctan": "",
    "arctan2": "Tensor other",
    "arctan2_": "Tensor other",
    "arctan_": "",
    "arctanh": "",
    "arctanh_": "",
    "argmax": "int? dim=None, bool keepdim=False",
    "argmin": "int? dim=None, bool keepdim=False",
    "argsort": "*, bool stable, int dim=-1, bool descending=False | int dim=-1, bool descending=False",
    "argwhere": "",
    "as_strided": "ints size, ints stride, int? storage_offset=None",
    "as_strided_": "ints size, ints stride, int? storage_offset=None",
    "as_strided_scatter": "Tensor src, ints size, ints stride, int? storage_offset=None",
    "as_subclass": "any cls",
    "asin": "",
    "asin_": "",
    "asinh": "",
    "asinh_": "",
    "atan": "",
    "atan2": "Tensor other",
    "atan2_": "Tensor other",
    "atan_": "",
    "atanh": "",
    "atanh_": "",
    "baddbmm": (
        "Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor "
        "batch1, Tensor batch2 | !Number beta, Tensor batch1, Tensor batch2"
    ),
    "baddbmm_": (
        "Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1 | !Number beta, Number alpha, Tensor "
        "batch1, Tensor batch2 | !Number beta, Tensor batch1, Tensor batch2"
    ),
    "bernoulli": "*, Generator? generator=None | float p, *, Generator? generator=None",
    "bernoulli_": "Tensor p, *, Generator? generator=None | float p=0.5, *, Generator? generator=None",
    "bfloat16": "",
    "bincount": "Tensor? weights=None, int minlength=0",
    "bitwise_and": "Tensor other | Number other",
    "bitwise_and_": "Tensor other | Number other",
    "bitwise_left_shift": "Tensor other | Number other",
    "bitwise_left_shift_": "Tensor other | Number other",
    "bitwise_not": "",
    "bitwise_not_": "",
    "bitwise_or": "Tensor other | Number other",
    "bitwise_or_": "Tensor other | Number other",
    "bitwise_right_shift": "Tensor other | Number other",
    "bitwise_right_shift_": "Tensor other | Number other",
    "bitwise_xor": "Tensor other | Number other",
    "bitwise_xor_": "Tensor other | Number other",
    "bmm": "Tensor mat2",
    "bool": "",
    "broadcast_to": "ints size",
    "byte": "",
    "cauchy_": "float median=0, float sigma=1, *, Generator? generator=None",
    "ccol_indices": "",
    "ceil": "",
    "ceil_": "",
    "chalf": "*, any? memory_format=None",
    "char": "",
    "cholesky": "bool upper=False",
    "cholesky_inverse": "bool upper=False",
    "cholesky_solve": "Tensor input2, bool upper=False",
    "chunk": "int chunks, int dim=0",
    "clamp": "Tensor? min=None, Tensor? max=None | Number? min=None, Number? max=None",
    "clamp_": "Tensor? min=None, Tensor? max=None | Number? min=None, Number? max=None",
    "clamp_max": "Tensor max | Number max",
    "clamp_max_": "Tensor max | Number max",
    "clamp_min": "Tensor min | Number min",
    "clamp_min_": "Tensor min | Number min",
    "clip": "Tensor? min=None, Tensor? max=None | Number? min=None, Number? max=None",
    "clip_": "Tensor? min=None, Tensor? max=None | Number? min=None, Number? max=None",
    "clone": "*, any? memory_format=None",
    "coalesce": "",
    "col_indices": "",
    "conj": "",
    "conj_physical": "",
    "conj_physical_": "",
    "contiguous": "any memory_format=torch.contiguous_format",
    "copy_": "Tensor|Number other, bool non_blocking=False",
    "copysign": "Tensor other | Number other",
    "copysign_": "Tensor other | Number other",
    "corrcoef": "",
    "cos": "",
    "cos_": "",
    "cosh": "",
    "cosh_": "",
    "count_nonzero": "int? dim=None | ints dim",
    "cov": "*, int correction=1, Tensor? fweights=None, Tensor? aweights=None",
    "cross": "Tensor other, int? dim=None",
    "crow_indices": "",
    "cummax": "int dim",
    "cummin": "int dim",
    "cumprod": "int dim, *, dtype? dtype=None",
    "cumprod_": "int dim, *, dtype? dtype=None",
    "cumsum": "int dim, *, dtype? dtype=None",
    "cumsum_": "int dim, *, dtype? dtype=None",
    "deg2rad": "",
    "deg2rad_": "",
    "dense_dim": "",
    "dequantize": "",
    "det": "",
    "detach": "",
    "detach_": "",
    "diag": "int diagonal=0",
    "diag_embed": "int offset=0, int dim1=-2, int dim2=-1",
    "diagflat": "int offset=0",
    "diagonal": "int offset=0, int dim1=0, int dim2=1",
    "diagonal_scatter": "Tensor src, int offset=0, int dim1=0, int dim2=1",
    "diff": "int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None",
    "digamma": "",
    "digamma_": "",
    "dim": "",
    "dist": "Tensor other, Number p=2",
    "div": "Tensor|Number other, *, str? rounding_mode=None",
    "div_": "Tensor|Number other, *, str? rounding_mode=None",
    "divide": "Tensor other | Tensor other, *, str? rounding_mode | Number other | Number other, *, str? rounding_mode",
    "divide_": (
        "Tensor other | Tensor other, *, str? rounding_mode | Number other | Number other, *, str? rounding_mode"
    ),
    "dot": "Tensor tensor",
    "double": "",
    "dsplit": "int sections | ints indices",
    "element_size": "",
    "eq": "Tensor other | Number other",
    "eq_": "Tensor other | Number other",
    "equal": "Tensor other",
    "erf": "",
    "erf_": "",
    "erfc": "",
    "erfc_": "",
    "erfinv": "",
    "erfinv_": "",
    "exp": "",
    "exp2": "",
    "exp2_": "",
    "exp_": "",
    "expand": "ints size, *, bool implicit=False",
    "expand_as": "Tensor other",
    "expm1": "",
    "expm1_": "",
    "exponential_": "float lambd=1, *, Generator? generator=None",
    "fill_": "Tensor value | Number value",
    "fill_diagonal_": "Number fill_value, bool wrap=False",
    "fix": "",
    "fix_": "",
    "flatten": "int start_dim=0, int end_dim=-1",
    "flip": "ints dims",
    "fliplr": "",
    "flipud": "",
    "float": "",
    "float_power": "Tensor exponent | Number exponent",
    "float_power_": "Tensor exponent | Number exponent",
    "floor": "",
    "floor_": "",
    "floor_divide": "Tensor|Number other",
    "floor_divide_": "Tensor|Number other",
    "fmax": "Tensor other",
    "fmin": "Tensor other",
    "fmod": "Tensor other | Number other",
    "fmod_": "Tensor other | Number other",
    "frac": "",
    "frac_": "",
    "frexp": "",
    "gather": "int dim, Tensor index, *, bool sparse_grad=False",
    "gcd": "Tensor other",
    "gcd_": "Tensor other",
    "ge": "Tensor other | Number other",
    "ge_": "Tensor other | Number other",
    "geometric_": "float p, *, Generator? generator=None",
    "geqrf": "",
    "ger": "Tensor vec2",
    "greater": "Tensor other | Number other",
    "greater_": "Tensor other | Number other",
    "greater_equal": "Tensor other | Number other",
    "greater_equal_": "Tensor other | Number other",
    "gt": "Tensor other | Number other",
    "gt_": "Tensor other | Number other",
    "half": "",
    "hardshrink": "Number lambd=0.5",
    "hash_tensor": "ints+ dim=(), *, bool keepdim=False, int mode=0",
    "heaviside": "Tensor values",
    "heaviside_": "Tensor values",
    "histc": "int bins=100, Number min=0, Number max=0",
    "histogram": (
        "Tensor bins, *, Tensor? weight=None, bool density=False | int bins=100, *, any? range=None, Tensor? "
        "weight=None, bool density=False"
    ),
    "hsplit": "int sections | ints indices",
    "hypot": "Tensor other",
    "hypot_": "Tensor other",
    "i0": "",
    "i0_": "",
    "igamma": "Tensor other",
    "igamma_": "Tensor other",
    "igammac": "Tensor other",
    "igammac_": "Tensor other",
    "index_add": "int dim, Tensor index, Tensor source, *, Number alpha=1",
    "index_add_": "int dim, Tensor index, Tensor source, *, Number alpha=1",
    "index_copy": "int dim, Tensor index, Tensor source",
    "index_copy_": "int dim, Tensor index, Tensor source",
    "index_fill": "int dim, Tensor index, Tensor value | int dim, Tensor index, Number value",
    "index_fill_": "int dim, Tensor index, Tensor value | int dim, Tensor index, Number value",
    "index_put": "Tensors? indices, Tensor values, bool accumulate=False",
    "index_put_": "Tensors? indices, Tensor values, bool accumulate=False",
    "index_reduce": "int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True",
    "index_reduce_": "int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True",
    "index_select": "int dim, Tensor index",
    "indices": "",
    "inner": "Tensor other",
    "int": "",
    "int_repr": "",
    "inverse": "",
    "is_coalesced": "",
    "is_complex": "",
    "is_conj": "",
    "is_contiguous": "any memory_format=torch.contiguous_format",
    "is_distributed": "",
    "is_floating_point": "",
    "is_neg": "",
    "is_nonzero": "",
    "is_same_size": "Tensor other",
    "is_set_to": "Tensor tensor",
    "is_signed": "",
    "isclose": "Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False",
    "isfinite": "",
    "isinf": "",
    "isnan": "",
    "isneginf": "",
    "isposinf": "",
    "isreal": "",
    "kron": "Tensor other",
    "kthvalue": "int k, int dim=-1, bool keepdim=False",
    "lcm": "Tensor other",
    "lcm_": "Tensor other",
    "ldexp": "Tensor other",
    "ldexp_": "Tensor other",
    "le": "Tensor other | Number other",
    "le_": "Tensor other | Number other",
    "lerp": "Tensor end, Tensor weight | Tensor end, Number weight",
    "lerp_": "Tensor end, Tensor weight | Tensor end, Number weight",
    "less": "Tensor other | Number other",
    "less_": "Tensor other | Number other",
    "less_equal": "Tensor other | Number other",
    "less_equal_": "Tensor other | Number other",
    "lgamma": "",
    "lgamma_": "",
    "log": "",
    "log10": "",
    "log10_": "",
    "log1p": "",
    "log1p_": "",
    "log2": "",
    "log2_": "",
    "log_": "",
    "log_normal_": "float mean=1, float std=2, *, Generator? generator=None",
    "log_softmax": "int dim, dtype? dtype=None",
    "logaddexp": "Tensor other",
    "logaddexp2": "Tensor other",
    "logcumsumexp": "int dim",
    "logdet": "",
    "logical_and": "Tensor other",
    "logical_and_": "Tensor other",
    "logical_not": "",
    "logical_not_": "",
    "logical_or": "Tensor other",
    "logical_or_": "Tensor other",
    "logical_xor": "Tensor other",
    "logical_xor_": "Tensor other",
    "logit": "float? eps=None",
    "logit_": "float? eps=None",
    "logsumexp": "ints+ dim, bool keepdim=False",
    "long": "",
    "lt": "Tensor other | Number other",
    "lt_": "Tensor other | Number other",
    "lu_solve": "Tensor LU_data, Tensor LU_pivots",
    "map2_": "Tensor x, Tensor y, any callable",
    "map_": "Tensor other, any callable",
    "masked_fill": "Tensor mask, Tensor value | Tensor mask, Number value",
    "masked_fill_": "Tensor mask, Tensor value | Tensor mask, Number value",
    "masked_scatter": "Tensor mask, Tensor source",
    "masked_scatter_": "Tensor mask, Tensor source",
    "masked_select": "Tensor mask",
    "matmul": "Tensor other",
    "matrix_exp": "",
    "matrix_power": "int n",
    "max": " | Tensor other | int dim, bool keepdim=False",
    "maximum": "Tensor other",
    "mean": "*, dtype? dtype=None | ints+? dim, bool keepdim=False, *, dtype? dtype=None",
    "median": " | int dim, bool keepdim=False",
    "min": " | Tensor other | int dim, bool keepdim=False",
    "minimum": "Tensor other",
    "mm": "Tensor mat2",
    "mode": "int dim=-1, bool keepdim=False",
    "moveaxis": "int source, int destination | ints source, ints destination",
    "movedim": "int source, int destination | ints source, ints destination",
    "msort": "",
    "mul": "Tensor|Number other",
    "mul_": "Tensor|Number other",
    "multinomial": "int num_samples, bool replacement=False, *, Generator? generator=None",
    "multiply": "Tensor other | Number other",
    "multiply_": "Tensor other | Number other",
    "mv": "Tensor vec",
    "mvlgamma": "int p",
    "mvlgamma_": "int p",
    "nan_to_num": "float? nan=None, float? posinf=None, float? neginf=None",
    "nan_to_num_": "float? nan=None, float? posinf=None, float? neginf=None",
    "nanmean": "ints+? dim=None, bool keepdim=False, *, dtype? dtype=None",
    "nanmedian": " | int dim, bool keepdim=False",
    "nanquantile": (
        "Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear' | float q, int? dim=None, bool"
        " keepdim=False, *, str interpolation='linear'"
    ),
    "nansum": "ints+? dim=None, bool keepdim=False, *, dtype? dtype=None",
    "narrow": "int dim, Tensor start, int length | int dim, int start, int length",
    "narrow_copy": "int dim, int start, int length",
    "ndimension": "",
    "ne": "Tensor other | Number other",
    "ne_": "Tensor other | Number other",
    "neg": "",
    "neg_": "",
    "negative": "",
    "negative_": "",
    "nelement": "",
    "new_empty": (
        "ints size, *, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "new_empty_strided": (
        "ints size, ints stride, *, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False,"
        " bool? requires_grad=False"
    ),
    "new_full": (
        "ints size, Number fill_value, *, dtype? dtype=None, any? layout=None, any? device=None, bool? "
        "pin_memory=False, bool? requires_grad=False"
    ),
    "new_ones": (
        "ints size, *, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "new_tensor": "any data, dtype? dtype=None, any? device=None, bool requires_grad=False, bool pin_memory=False",
    "new_zeros": (
        "ints size, *, dtype? dtype=None, any? layout=None, any? device=None, bool? pin_memory=False, bool? "
        "requires_grad=False"
    ),
    "nextafter": "Tensor other",
    "nextafter_": "Tensor other",
    "nonzero": "*, any as_tuple=False | *, any as_tuple",
    "nonzero_static": "*, int size, int fill_value=-1",
    "normal_": "float mean=0, float std=1, *, Generator? generator=None",
    "not_equal": "Tensor other | Number other",
    "not_equal_": "Tensor other | Number other",
    "numel": "",
    "orgqr": "Tensor input2",
    "ormqr": "Tensor input2, Tensor input3, bool left=True, bool transpose=False",
    "outer": "Tensor vec2",
    "permute": "ints dims",
    "pin_memory": "any? device=None",
    "pinverse": "float rcond=1e-15",
    "polygamma": "int n",
    "polygamma_": "int n",
    "positive": "",
    "pow": "Tensor exponent | Number exponent",
    "pow_": "Tensor exponent | Number exponent",
    "prelu": "Tensor weight",
    "prod": "*, dtype? dtype=None | int dim, bool keepdim=False, *, dtype? dtype=None",
    "put": "Tensor index, Tensor source, bool accumulate=False",
    "put_": "Tensor index, Tensor source, bool accumulate=False",
    "q_per_channel_axis": "",
    "q_per_channel_scales": "",
    "q_per_channel_zero_points": "",
    "q_scale": "",
    "q_zero_point": "",
    "qr": "bool some=True",
    "qscheme": "",
    "quantile": (
        "Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear' | float q, int? dim=None, bool"
        " keepdim=False, *, str interpolation='linear'"
    ),
    "rad2deg": "",
    "rad2deg_": "",
    "random_": (
        "*, Generator? generator=None | int to, *, Generator? generator=None | int from, int? to, *, Generator? "
        "generator=None"
    ),
    "ravel": "",
    "reciprocal": "",
    "reciprocal_": "",
    "record_stream": "any s",
    "relu": "",
    "relu_": "",
    "remainder": "Tensor other | Number other",
    "remainder_": "Tensor other | Number other",
    "renorm": "Number p, int dim, Number maxnorm",
    "renorm_": "Number p, int dim, Number maxnorm",
    "repeat": "ints repeats",
    "repeat_interleave": (
        "Tensor repeats, int? dim=None, *, int? output_size=None | int repeats, int? dim=None, *, int? output_size=None"
    ),
    "reshape": "ints shape",
    "reshape_as": "Tensor other",
    "resize_": "ints size, *, any? memory_format=None",
    "resize_as_": "Tensor the_template, *, any? memory_format=None",
    "resize_as_sparse_": "Tensor the_template",
    "resolve_conj": "",
    "resolve_neg": "",
    "roll": "ints+ shifts, ints+ dims=()",
    "rot90": "int k=1, ints dims=(0,1)",
    "round": " | *, int decimals",
    "round_": " | *, int decimals",
    "row_indices": "",
    "rsqrt": "",
    "rsqrt_": "",
    "scatter": (
        "int dim, Tensor index, Tensor src | int dim, Tensor index, Tensor src, *, str reduce | int dim, Tensor "
        "index, Number value | int dim, Tensor index, Number value, *, str reduce"
    ),
    "scatter_": (
        "int dim, Tensor index, Tensor src | int dim, Tensor index, Tensor src, *, str reduce | int dim, Tensor "
        "index, Number value | int dim, Tensor index, Number value, *, str reduce"
    ),
    "scatter_add": "int dim, Tensor index, Tensor src",
    "scatter_add_": "int dim, Tensor index, Tensor src",
    "scatter_reduce": "int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True",
    "scatter_reduce_": "int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True",
    "select": "int dim, int index",
    "select_scatter": "Tensor src, int dim, int index",
    "set_": " | Tensor source | Tensor source, int storage_offset, ints size, ints stride=None",
    "sgn": "",
    "sgn_": "",
    "short": "",
    "sigmoid": "",
    "sigmoid_": "",
    "sign": "",
    "sign_": "",
    "signbit": "",
    "sin": "",
    "sin_": "",
    "sinc": "",
    "sinc_": "",
    "sinh": "",
    "sinh_": "",
    "size": "any? dim=None | int dim",
    "slice_inverse": "Tensor src, int dim=0, int? start=None, int? end=None, int step=1",
    "slice_scatter": "Tensor src, int dim=0, int? start=None, int? end=None, int step=1",
    "slogdet": "",
    "smm": "Tensor mat2",
    "softmax": "int dim, dtype? dtype=None",
    "sort": "*, bool? stable, int dim=-1, bool descending=False | int dim=-1, bool descending=False",
    "sparse_dim": "",
    "sparse_mask": "Tensor mask",
    "sparse_resize_": "ints size, int sparse_dim, int dense_dim",
    "sparse_resize_and_clear_": "ints size, int sparse_dim, int dense_dim",
    "split_with_sizes": "ints split_sizes, int dim=0",
    "sqrt": "",
    "sqrt_": "",
    "square": "",
    "square_": "",
    "squeeze": " | int dim | ints dim",
    "squeeze_": " | int dim | ints dim",
    "sspaddmm": "Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1",
    "std": (
        "ints+? dim, bool unbiased=True, bool keepdim=False | ints+? dim=None, *, Number? correction=None, bool "
        "keepdim=False | bool unbiased=True"
    ),
    "storage_offset": "",
    "stride": "any? dim=None | int dim",
    "sub": "Tensor|Number other, *, Number? alpha=1 | !Number alpha, Tensor|Number other",
    "sub_": "Tensor|Number other, *, Number? alpha=1 | !Number alpha, Tensor|Number other",
    "subtract": "Tensor other, *, Number alpha=1 | Number other, Number alpha=1",
    "subtract_": "Tensor other, *, Number alpha=1 | Number other, Number alpha=1",
    "sum": "*, dtype? dtype=None | ints+? dim, bool keepdim=False, *, dtype? dtype=None",
    "sum_to_size": "ints size",
    "svd": "bool some=True, bool compute_uv=True",
    "swapaxes": "int axis0, int axis1",
    "swapaxes_": "int axis0, int axis1",
    "swapdims": "int dim0, int dim1",
    "swapdims_": "int dim0, int dim1",
    "t": "",
    "t_": "",
    "take": "Tensor index",
    "take_along_dim": "Tensor indices, int? dim=None",
    "tan": "",
    "tan_": "",
    "tanh": "",
    "tanh_": "",
    "tensor_split": "ints indices, int dim=0 | Tensor tensor_indices_or_sections, int dim=0 | int sections, int dim=0",
    "tile": "ints dims",
    "to": (
        "any? device=None, dtype? dtype=None, bool non_blocking=False, bool copy=False, *, any? memory_format=None"
        " | dtype dtype, bool non_blocking=False, bool copy=False, *, any? memory_format=None | Tensor other, bool"
        " non_blocking=False, bool copy=False, *, any? memory_format=None"
    ),
    "to_dense": "dtype? dtype=None, *, bool? masked_grad=None",
    "to_mkldnn": "dtype? dtype=None",
    "to_padded_tensor": "float padding, ints? output_size=None",
    "to_sparse": "*, any? layout=None, ints+? blocksize=None, int? dense_dim=None | int sparse_dim",
    "to_sparse_bsc": "ints+ blocksize, int? dense_dim=None",
    "to_sparse_bsr": "ints+ blocksize, int? dense_dim=None",
    "to_sparse_csc": "int? dense_dim=None",
    "to_sparse_csr": "int? dense_dim=None",
    "topk": "int k, int dim=-1, bool largest=True, bool sorted=True",
    "trace": "",
    "transpose": "int dim0, int dim1",
    "transpose_": "int dim0, int dim1",
    "triangular_solve": "Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False",
    "tril": "int diagonal=0",
    "tril_": "int diagonal=0",
    "triu": "int diagonal=0",
    "triu_": "int diagonal=0",
    "true_divide": "Tensor|Number other",
    "true_divide_": "Tensor|Number other",
    "trunc": "",
    "trunc_": "",
    "type_as": "Tensor other",
    "unbind": "int dim=0",
    "unfold": "int dimension, int size, int step",
    "uniform_": "float from=0, float to=1, *, Generator? generator=None",
    "unsafe_chunk": "int chunks, int dim=0",
    "unsafe_split": "int split_size, int dim=0",
    "unsafe_split_with_sizes": "ints split_sizes, int dim=0",
    "unsqueeze": "int dim",
    "unsqueeze_": "int dim",
    "untyped_storage": "",
    "values": "",
    "var": (
        "ints+? dim, bool unbiased=True, bool keepdim=False | ints+? dim=None, *, Number? correction=None, bool "
        "keepdim=False | bool unbiased=True"
    ),
    "vdot": "Tensor other",
    "view": "dtype dtype | ints size",
    "view_as": "Tensor other",
    "vsplit": "int sections | ints indices",
    "where": "Tensor condition, Tensor other | Tensor condition, Number other",
    "xlogy": "Tensor other | Number other",
    "xlogy_": "Tensor other | Number other",
    "xpu": "any? device=None, bool non_blocking=False, any memory_format=torch.preserve_format",
    "zero_": "",
}
"""Methods of tensors, without the tensor itself."""

INNER = {
    "adaptive_avg_pool2d": "Tensor input, ints+ output_size, *, Tensor? out=None",
    "adaptive_avg_pool3d": "Tensor input, ints+ output_size, *, Tensor? out=None",
    "adaptive_max_pool2d": "Tensor input, ints+ output_size, *, Tensor? out=None",
    "adaptive_max_pool3d": "Tensor input, ints+ output_size, *, Tensor? out=None",
    "alpha_dropout": "Tensor input, float p, bool train",
    "avg_pool2d": (
        "Tensor input, ints+ kernel_size, ints+ stride=None, ints+ padding=0, bool ceil_mode=False, bool "
        "count_include_pad=True, int? divisor_override=None, *, Tensor? out=None"
    ),
    "avg_pool3d": (
        "Tensor input, ints+ kernel_size, ints+ stride=None, ints+ padding=0, bool ceil_mode=False, bool "
        "count_include_pad=True, int? divisor_override=None, *, Tensor? out=None"
    ),
    "celu_": "Tensor input, Number alpha=1.",
    "col2im": (
        "Tensor input, any output_size, any kernel_size, any dilation, any padding, any stride, *, Tensor? out=None"
    ),
    "cross_entropy_loss": (
        "Tensor input, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float "
        "label_smoothing=0."
    ),
    "elu": "Tensor input, Number alpha=1, Number scale=1, Number input_scale=1, *, Tensor? out=None",
    "elu_": "Tensor input, Number alpha=1, Number scale=1, Number input_scale=1",
    "feature_alpha_dropout": "Tensor input, float p, bool train",
    "gelu": 'Tensor input, *, str approximate="none", Tensor? out=None',
    "glu": "Tensor input, int dim=-1, *, Tensor? out=None",
    "hardtanh": "Tensor input, Number min_val=-1, Number max_val=1, *, Tensor? out=None",
    "hardtanh_": "Tensor input, Number min_val=-1, Number max_val=1",
    "huber_loss": "Tensor input, Tensor target, int reduction=1, float delta=1., *, Tensor? out=None",
    "im2col": "Tensor input, any kernel_size, any dilation, any padding, any stride, *, Tensor? out=None",
    "instance_norm": (
        "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
        "use_input_stats, float momentum, float eps, bool cudnn_enabled"
    ),
    "kl_div": "Tensor input, Tensor target, int reduction=1, *, bool log_target=False",
    "leaky_relu": "Tensor input, Number negative_slope=0.01, *, Tensor? out=None",
    "leaky_relu_": "Tensor input, Number negative_slope=0.01",
    "linalg_cholesky": "Tensor input, *, bool upper=False, Tensor? out=None",
    "linalg_cond": "Tensor input, Number? p=None, *, Tensor? out=None | Tensor input, str p, *, Tensor? out=None",
    "linalg_cross": "Tensor input, Tensor other, *, int dim=-1, Tensor? out=None",
    "linalg_det": "Tensor A, *, Tensor? out=None",
    "linalg_diagonal": "Tensor A, *, int offset=0, int dim1=-2, int dim2=-1",
    "linalg_eigh": 'Tensor input, str UPLO="L" | Tensor input, str UPLO="L", *, any eigvals, any eigvecs',
    "linalg_eigvalsh": 'Tensor input, str UPLO="L", *, Tensor? out=None',
    "linalg_inv": "Tensor A, *, Tensor? out=None",
    "linalg_lstsq": "Tensor input, Tensor b, float? rcond=None, *, str? driver=None, Tensor? out=None",
    "linalg_matmul": "Tensor input, Tensor other, *, Tensor? out=None",
    "linalg_matrix_exp": "Tensor input, *, Tensor? out=None",
    "linalg_matrix_norm": (
        "Tensor input, Number ord, ints dim=[-2,-1], bool keepdim=False, *, dtype? dtype=None, Tensor? out=None | "
        'Tensor input, str ord="fro", ints dim=[-2,-1], bool keepdim=False, *, dtype? dtype=None, Tensor? out=None'
    ),
    "linalg_matrix_power": "Tensor input, int n, *, Tensor? out=None",
    "linalg_matrix_rank": (
        "Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False, Tensor? out=None | Tensor "
        "input, *, float? atol=None, float? rtol=None, bool hermitian=False, Tensor? out=None | Tensor input, "
        "float tol, bool hermitian=False, *, Tensor? out=None | Tensor input, Tensor tol, bool hermitian=False, *,"
        " Tensor? out=None | Tensor input, Tensor tol, bool hermitian=False, *, any out, Tensor? out=None"
    ),
    "linalg_multi_dot": "Tensors tensors, *, Tensor? out=None",
    "linalg_norm": (
        "Tensor input, Number? ord=None, ints+? dim=None, bool keepdim=False, *, dtype? dtype=None, Tensor? "
        "out=None | Tensor input, str ord, ints+? dim=None, bool keepdim=False, *, dtype? dtype=None, Tensor? "
        "out=None"
    ),
    "linalg_pinv": (
        "Tensor input, *, float? atol=None, float? rtol=None, bool hermitian=False, Tensor? out=None | Tensor "
        "input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False, Tensor? out=None | Tensor input, "
        "float rcond, bool hermitian=False, *, Tensor? out=None | Tensor input, Tensor rcond, bool "
        "hermitian=False, *, Tensor? out=None | Tensor input, Tensor rcond, bool hermitian=False, *, any out, "
        "Tensor? out=None"
    ),
    "linalg_qr": 'Tensor A, str mode="reduced", *, Tensor? out=None',
    "linalg_slogdet": "Tensor A, *, Tensor? out=None",
    "linalg_solve": "Tensor A, Tensor B, *, bool left=True, Tensor? out=None",
    "linalg_solve_triangular": (
        "Tensor input, Tensor B, *, bool upper, bool left=True, bool unitriangular=False, Tensor? out=None"
    ),
    "linalg_svd": (
        "Tensor A, bool full_matrices=True, *, str? driver=None | Tensor A, bool full_matrices=True, *, str? "
        "driver=None, any U, any S, any Vh"
    ),
    "linalg_svdvals": "Tensor A, *, str? driver=None, Tensor? out=None",
    "linalg_tensorsolve": "Tensor input, Tensor other, ints? dims=None, *, Tensor? out=None",
    "linalg_vecdot": "Tensor x, Tensor y, *, int dim=-1, Tensor? out=None",
    "linalg_vector_norm": (
        "Tensor input, Number ord=2, ints+? dim=None, bool keepdim=False, *, dtype? dtype=None, Tensor? out=None"
    ),
    "linear": "Tensor input, Tensor weight, Tensor? bias=None, *, Tensor? out=None",
    "multi_margin_loss": (
        "Tensor input, Tensor target, Number p=1, Number margin=1, Tensor? weight=None, int reduction=1, *, "
        "Tensor? out=None"
    ),
    "nll_loss_nd": "Tensor input, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100",
    "one_hot": "Tensor input, int num_classes=-1",
    "pad": 'Tensor input, ints pad, str mode="constant", float? value=None',
    "poisson_nll_loss": "Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction",
    "relu_": "Tensor input",
    "rrelu_": (
        "Tensor input, Number lower=0.125, Number upper=0.33333333333333331, bool training=False, any? generator=None"
    ),
    "scaled_dot_product_attention": (
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False,"
        " *, float? scale=None, bool enable_gqa=False"
    ),
    "selu_": "Tensor input",
    "smooth_l1_loss": "Tensor input, Tensor target, int reduction=1, float beta=1., *, Tensor? out=None",
    "softplus": "Tensor input, Number beta=1, Number threshold=20, *, Tensor? out=None",
    "softshrink": "Tensor input, Number lambd=0.5, *, Tensor? out=None",
    "threshold_": "Tensor input, Number threshold, Number value",
}
"""Functions of ``torch.linalg``, and those that ``torch.nn.functional`` calls."""

INNER_CALLS = {
    "adaptive_avg_pool1d": "adaptive_avg_pool1d",
    "alpha_dropout": "alpha_dropout input p training",
    "avg_pool1d": "avg_pool1d",
    "avg_pool2d": "avg_pool2d",
    "avg_pool3d": "avg_pool3d",
    "batch_norm": "batch_norm input weight bias running_mean running_var training momentum eps -",
    "bilinear": "bilinear",
    "celu": "celu input alpha",
    "celu_": "celu_",
    "channel_shuffle": "channel_shuffle",
    "conv1d": "conv1d",
    "conv2d": "conv2d",
    "conv3d": "conv3d",
    "conv_transpose1d": "conv_transpose1d",
    "conv_transpose2d": "conv_transpose2d",
    "conv_transpose3d": "conv_transpose3d",
    "cosine_embedding_loss": "cosine_embedding_loss input1 input2 target margin -",
    "cosine_similarity": "cosine_similarity",
    "cross_entropy": "cross_entropy_loss input target weight - ignore_index label_smoothing",
    "dropout": "dropout input p training",
    "dropout1d": "feature_dropout input p training",
    "dropout2d": "feature_dropout input p training",
    "dropout3d": "feature_dropout input p training",
    "elu": "elu input alpha",
    "elu_": "elu_",
    "embedding": "embedding weight input",
    "feature_alpha_dropout": "feature_alpha_dropout input p training",
    "fold": "col2im input output_size kernel_size dilation padding stride",
    "gelu": "gelu",
    "glu": "glu input dim",
    "group_norm": "group_norm input num_groups weight bias eps",
    "hardshrink": "hardshrink",
    "hardtanh": "hardtanh input min_val max_val",
    "hardtanh_": "hardtanh_",
    "hinge_embedding_loss": "hinge_embedding_loss input target margin -",
    "instance_norm": "instance_norm input weight bias running_mean running_var use_input_stats momentum eps -",
    "kl_div": "kl_div input target -",
    "layer_norm": "layer_norm input normalized_shape weight bias eps",
    "leaky_relu": "leaky_relu input negative_slope",
    "leaky_relu_": "leaky_relu_",
    "linear": "linear",
    "margin_ranking_loss": "margin_ranking_loss input1 input2 target margin -",
    "max_pool1d": "max_pool1d input kernel_size stride padding dilation ceil_mode",
    "max_pool2d": "max_pool2d input kernel_size stride padding dilation ceil_mode",
    "max_pool3d": "max_pool3d input kernel_size stride padding dilation ceil_mode",
    "multi_margin_loss": "multi_margin_loss input target p margin weight",
    "nll_loss": "nll_loss_nd input target weight - ignore_index",
    "one_hot": "one_hot",
    "pad": "pad input pad mode value",
    "pairwise_distance": "pairwise_distance",
    "pixel_shuffle": "pixel_shuffle",
    "pixel_unshuffle": "pixel_unshuffle",
    "poisson_nll_loss": "poisson_nll_loss input target log_input full eps -",
    "prelu": "prelu",
    "relu_": "relu_",
    "rms_norm": "rms_norm input normalized_shape weight eps",
    "rrelu": "rrelu input lower upper training",
    "rrelu_": "rrelu_",
    "scaled_dot_product_attention": "scaled_dot_product_attention",
    "selu_": "selu_",
    "softplus": "softplus",
    "softshrink": "softshrink",
    "threshold": "threshold input threshold value",
    "threshold_": "threshold_",
    "triplet_margin_loss": "triplet_margin_loss anchor positive negative margin p eps swap",
    "unfold": "im2col input kernel_size dilation padding stride",
}
"""The function that each function of ``torch.nn.functional`` calls, and where its parameters go (``-``: unused)."""

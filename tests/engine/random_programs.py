"""Random programs over views, writes, grad modes, hooks and passes, each line of which may fail.

After every line everything that can be seen of every variable is looked at.
"""

from hypothesis import strategies as st

BEGINNING = """
a = torch.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=torch.float64, requires_grad=True)
b = torch.tensor([0.5, -1., 2.], dtype=torch.float64, requires_grad=True)
c = torch.tensor([[3., 1., 2.], [0., -2., 0.5]], dtype=torch.float64)
d = a * 1
e = b * 2
""".strip().splitlines()
START = (
    "import torch\n"
    + "\n".join(BEGINNING)
    + """
def noted(name, factor=None):
    def hook(grad):
        see(name)
        numbers(grad)
        return None if factor is None else grad * factor
    return hook
"""
)
NAMES = "abcde"
EXPRESSIONS = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / {y}", "{x} * 0.5", "2 - {x}", "1 / {x}", "2 ** {x}", "{x}.abs()", "{x}.sin()",
    "{x}.tanh()", "{x}.sigmoid()", "{x}.relu()", "{x}.exp()", "{x} ** 2", "{x} ** {y}", "-{x}", "{x}.sqrt()", "{x}.clamp(-1, 1)",
    "{x}[0]", "{x}[1:]", "{x}[..., 0]", "{x}[:, 1:]", "{x}[:, ::2]", "{x}[None]", "{x}[[0, 0]]", "{x}[{x} > 1]", "{x}[torch.tensor([1, 0])]",
    "{x}.t()", "{x}.T", "{x}.view(-1)", "{x}.reshape(-1)", "{x}.reshape(3, 2)", "{x}.unsqueeze(0)", "{x}.squeeze()", "{x}.flatten()",
    "{x}.transpose(0, 1)", "{x}.permute(1, 0)", "{x}.narrow(0, 0, 1)", "{x}.select(0, 1)", "{x}.diagonal()",
    "{x}.expand(2, 2, 3)", "{x}.expand(2, 3)", "{x}.expand_as({y})", "{x}.contiguous()", "{x}.clone()", "{x}.detach()", "{x}.data", "{x}",
    "{x}.sum()", "{x}.sum(0)", "{x}.mean()", "{x}.mean(-1, keepdim=True)", "{x}.prod()", "{x}.max()", "{x}.max(0)[0]", "{x}.min(0).values",
    "{x}.cumsum(0)", "{x}.norm()", "{x}.std()", "{x}.logsumexp(0)", "{x}.softmax(0)", "{x}.sort().values",
    "torch.cat([{x}, {y}])", "torch.stack([{x}, {y}])", "{x}.unbind(0)[0]", "{x}.split(1)[0]", "{x}.chunk(2)[1]",
    "torch.where({x} > {y}, {x}, {y})", "torch.maximum({x}, {y})", "{x}.masked_fill({x} > 1, 0.5)", "{x} @ {y}", "{x} @ {y}.t()",
    "{x}.gather(0, torch.zeros(1, 3, dtype=torch.long))", "{x}.index_select(0, torch.tensor([0]))", "torch.outer({x}, {y})",
    "{x}.to(torch.float32)", "{x}.requires_grad_()", "torch.ones(2, 3).double().requires_grad_()",
]  # fmt: skip
WRITES = [
    "{x}.add_({y})", "{x}.mul_({y})", "{x}.mul_(0.5)", "{x}.sub_(1)", "{x}.div_({y})", "{x}.pow_(2)", "{x}.zero_()", "{x}.fill_(2)",
    "{x}.sin_()", "{x}.tanh_()", "{x}.exp_()", "{x}.relu_()", "{x}.clamp_(-1, 1)", "{x}.sigmoid_()", "{x}.neg_()",
    "{x}[0] = {y}", "{x}[0] = 1.5", "{x}[...] = {y}", "{x}[:] = 0.25", "{x}[..., 0] = 3.", "{x}[{x} > 1] = 0.", "{x}[[0]] = {y}",
    "{x}[0].add_(1)", "{x}.view(-1)[0] = 2", "{x}.t().mul_(2)", "{x}.unbind(0)[0].zero_()", "{x}.detach().mul_(2)", "{x}.data.add_(1)",
    "{x}.copy_({y})", "{x} += {y}", "{x} *= 2", "{x} -= {y}[0]", "{x}.masked_fill_({x} > 1, 0.5)", "{x}.data = {y}.data",
    "{x}.unsqueeze_(0)", "{x}.squeeze_()", "{x}.t_()", "{x}.detach_()",
]  # fmt: skip
OTHERS = [
    "{x}.retain_grad()", "{x}.grad = None", "{x}.grad = {y}", "{x}.grad.zero_()", "{x}.sum().backward()", "({x} * {y}).sum().backward()",
    "{x}.sum().backward(retain_graph=True)", "{x}.backward(torch.ones_like({x}))", "{x}.backward()",
    "({x} ** 2).sum().backward(create_graph=True)", "torch.autograd.backward([{x}.sum(), {y}.sum()])",
    "torch.autograd.backward([{x}, {x}], [torch.ones_like({x}), torch.ones_like({x})])",
    "numbers(*torch.autograd.grad({x}.sum(), [{y}], allow_unused=True, retain_graph=True))",
    "numbers(*torch.autograd.grad(({x} * {y}).sum(), [{y}]))", "numbers(*torch.autograd.grad(({x} ** 3).sum(), [{y}, {x}]))",
    "numbers(*torch.autograd.grad({x}.sum(), [{y}], materialize_grads=True))", "{x}.sum().backward(inputs=[{y}])",
    "{x}.register_hook(noted('{x}'))", "{x}.register_hook(noted('{x}', 2))", "{x}.register_hook(noted('{x}', 0.5)).remove()",
    "{x}.register_post_accumulate_grad_hook(lambda t: see(t))", "{x}.grad_fn.register_prehook(lambda g: numbers(*g))",
    "{x}.grad_fn.register_hook(lambda i, o: numbers(*i, *o))", "see({x}.grad_fn.next_functions[0][0].name())",
    "see({x}.grad_fn.name() == 'PowBackward2' or {x}.grad_fn._saved_self)",  # that one may have saved a number
    "see({x}.grad_fn._saved_result)", "see({x}.is_contiguous(), {x}.stride(), {x}._is_view())",
    "see({x}.tolist())", "see(float({x}))", "see(bool({x}))", "print({x})", "{x}.requires_grad = False",
]  # fmt: skip


@st.composite
def simple_lines(draw):
    """One statement: an assignment, a write, or something that looks at or walks the graph."""
    names = {"x": draw(st.sampled_from(NAMES)), "y": draw(st.sampled_from(NAMES))}
    kind = draw(st.sampled_from(["expression", "expression", "write", "other"]))
    if kind == "write":
        return draw(st.sampled_from(WRITES)).format(**names)
    if kind == "other":
        return draw(st.sampled_from(OTHERS)).format(**names)
    return f"{draw(st.sampled_from(NAMES[2:]))} = " + draw(st.sampled_from(EXPRESSIONS)).format(**names)


@st.composite
def lines(draw):
    """A statement, sometimes without gradients."""
    line = draw(simple_lines())
    mode = draw(st.sampled_from(["", "", "", "with torch.no_grad(): ", "with torch.enable_grad(): "]))
    return mode + line


def program(written):
    """The text that tries each line and looks at everything after it."""
    body = "".join(
        f"try:\n    {line}\nexcept Exception as error: see((type(error).__name__, str(error)))\n"
        + "".join(f"attempt(lambda: {name})\n" for name in NAMES)
        for line in written
    )
    return START + body

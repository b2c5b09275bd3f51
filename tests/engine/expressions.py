"""Expressions whose value, or error, and whose gradients are looked at."""

_LOOK = """
attempt(lambda: {expression})
try:
    results = {expression}
    results = [r for r in (results if isinstance(results, tuple) else [results]) if r.requires_grad]
    if results:
        sum((r * torch.arange(1, r.numel() + 1).reshape(r.shape)).sum() for r in results).backward()
    numbers({leaves})
except Exception as error:
    see((type(error).__name__, str(error)))
"""


def looked_at(expression, leaves):
    """The text of a program that shows what an expression gives, and what gradients it gives to these leaves."""
    return _LOOK.format(expression=expression, leaves=", ".join(f"{leaf}.grad" for leaf in leaves))


def split(text):
    """One expression a line, or several with bars between them."""
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


def attempted(expressions):
    """The text of a program that shows what each expression gives."""
    return "".join(f"attempt(lambda: {expression})\n" for expression in expressions)

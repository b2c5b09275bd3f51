"""The branch that was traced away

A trace records what ran. For 0 the sum is not positive, so that only x + 2
ran: the if is gone, and so is x * 2. The traced model is wrong for 1: go to
its call with n and compare it with the model's own call before it: there a
sum, a gt and a mul, here only an add, as nothing is chosen any more. A warning
names the line where the number was read. where keeps both branches: it is an
operation, and chooses whenever it runs.
"""

import warnings

import gviz.engine as torch


class NonTraceableModel(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x + 2


class TraceableModel(torch.nn.Module):
    def forward(self, x):
        return torch.where(x.sum() > 0, x * 2, x + 2)


model, zero, one = NonTraceableModel(), torch.tensor(0), torch.tensor(1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    traced = torch.jit.trace(model, zero, check_trace=False)
for warning in caught:
    if "Converting" in str(warning.message):
        print(f"line {warning.lineno}: {str(warning.message)[:73]}")
print(f"model(1) = {model(one).item()}  traced(1) = {traced(one).item()}")

traced = torch.jit.trace(TraceableModel(), zero, check_trace=False)
print(f"with where: traced(1) = {traced(one).item()}")

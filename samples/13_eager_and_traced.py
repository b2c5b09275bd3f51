"""Eager and traced: a model that runs its Python, and one that has none left

forward says when it runs. Called eagerly it runs every time: a new graph for
every call. trace runs it once more and keeps the operations, two Linears and a
relu. From then on forward is never called again, as the missing line shows,
and new data goes through the recorded operations. Follow the last call with s:
module "SimpleModel (traced graph)" begins, and each box in it names the line
of forward that it was recorded from. The parameters are the same, #1 to #4.
"""

import gviz.engine as torch


class SimpleModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = torch.nn.Linear(3, 3)
        self.layer2 = torch.nn.Linear(3, 1)

    def forward(self, x):
        print("forward runs")
        x = torch.relu(self.layer1(x))
        return self.layer2(x)


model = SimpleModel()
for parameter in model.parameters():
    torch.nn.init.constant_(parameter, 0.5)
data1, data2 = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[4.0, 5.0, 6.0]])

with torch.no_grad():
    print("eager, first call")
    output = model(data1)
    print(f"eager, second call: {model(data2).item()}")
    print("trace")
    traced = torch.jit.trace(model, data1, check_trace=False)
    print(f"traced, called: {traced(data2).item()}")

"""Two runs of one model: a new graph, but the same parameters

__init__ makes four parameters and no graph; calling the model makes one. Run
to the end of the first call with f, output1 is 5.75, and through its backward
pass with f again. Go on with n: the second call draws all its boxes anew, and
not one operation of the first graph takes part. Only the parameters are the
same boxes. That is why the second backward pass adds to their gradients:
layer2.bias.grad goes from 1 to 2. The program counts the nodes itself: nine
in each graph, and the four that are in both are the parameters.
"""

import gviz.engine as torch


class SimpleModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = torch.nn.Linear(3, 3)
        self.layer2 = torch.nn.Linear(3, 1)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        x = self.layer2(x)
        return x


def graph(node):
    nodes = {node}
    for next_node, _ in node.next_functions:
        if next_node is not None:
            nodes |= graph(next_node)
    return nodes


model = SimpleModel()
for parameter in model.parameters():
    torch.nn.init.constant_(parameter, 0.5)

input1 = torch.tensor([[1.0, 2.0, 3.0]])
output1 = model(input1)
output1.backward()
print(f"output1 = {output1.item()}  layer2.bias.grad = {model.layer2.bias.grad.item()}")

input2 = torch.tensor([[4.0, 5.0, 6.0]])
output2 = model(input2)
output2.backward()
print(f"output2 = {output2.item()}  layer2.bias.grad = {model.layer2.bias.grad.item()}")

first, second = graph(output1.grad_fn), graph(output2.grad_fn)
print(f"nodes: {len(first)} and {len(second)}, {len(first & second)} of them in both graphs")

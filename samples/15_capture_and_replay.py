"""Capture and replay: the same boxes, new numbers

The data is allocated before the capture: w and x. capture runs the operations
once and keeps them with their memory, the results too. Then copy_ writes new
data into x, and replay runs the operations again on the memory as it is: no
box is made, the numbers in the old ones change, one after the other: step
through a replay with s. What could not be repeated so is refused: x[x > 0] has
as many elements as the data say. A stable argsort of the mask puts the
positive ones first, too, and its size is always 3.
"""

import gviz.engine as torch
from gviz.engine import graphs

x = torch.tensor([1.0, -2.0, 3.0])
w = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])

try:
    with graphs.capture(graphs.Graph()):
        y = w @ torch.cat([x[x > 0], x[x <= 0]])
except RuntimeError as error:
    print(error)

graph = graphs.Graph()
with graphs.capture(graph):
    indices = torch.argsort(x <= 0, stable=True)
    y = w @ x[indices]
print(y.tolist())

for data in ([-1.0, -2.0, 5.0], [4.0, 5.0, 6.0]):
    x.copy_(torch.tensor(data))
    graph.replay()
    print(y.tolist())

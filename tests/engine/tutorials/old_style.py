"""A regression as it was written in 2017: Variable, .data, FloatTensor."""

import torch
from torch.autograd import Variable

x_data = Variable(torch.Tensor([[1.0], [2.0], [3.0]]))
y_data = Variable(torch.FloatTensor([[2.0], [4.0], [6.0]]))


class Model(torch.nn.Module):
    def __init__(self):
        super(Model, self).__init__()  # noqa: UP008  # as it was written then
        self.linear = torch.nn.Linear(1, 1)
        self.linear.weight.data.fill_(0.5)
        self.linear.bias.data.zero_()

    def forward(self, x):
        return self.linear(x)


model = Model()
criterion = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(50):
    y_pred = model(x_data)
    loss = criterion(y_pred, y_data)
    if epoch % 10 == 0:
        print(f"Epoch: {epoch} | Loss: {loss.data.item():.4f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
hour = Variable(torch.Tensor([[4.0]]))
print("Prediction (after training)", 4, f"{model.forward(hour).data[0][0].item():.3f}")
w = Variable(torch.Tensor([1.0]), requires_grad=True)
for x_value, y_value in ((1.0, 2.0), (2.0, 4.0)):
    error = (x_value * w - y_value).pow(2)
    error.backward()
    print("grad:", x_value, y_value, w.grad.data[0])
    w.data = w.data - 0.01 * w.grad.data
    w.grad.data.zero_()
print(w, isinstance(w, Variable), isinstance(w, torch.FloatTensor), torch.is_tensor(w), type(w), w.type())

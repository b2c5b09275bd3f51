"""A recurrent net over 5 and over 10 steps: one layer, two graphs

The loop in forward runs once for each element of the sequence, and the graph
grows with it: 5 times cat and Linear for the first sequence, 10 times for the
second. They are not 10 layers: every step uses the same weight and bias. Go
back through it with n: the gradient of the last step is 1, and on its way to
the step before the weight 0.5 halves it, and so on. All steps add to the one
bias.grad: 1 + 1/2 + 1/4 + 1/8 + 1/16 = 1.9375. After 10 steps it is 1.998:
the five earlier steps count for almost nothing.
"""

import gviz.engine as torch


class SimpleRNN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden_size = 1
        self.input_size = 1
        self.linear = torch.nn.Linear(self.hidden_size + self.input_size, self.hidden_size)

    def forward(self, input_sequence):
        hidden_state = torch.zeros(1, self.hidden_size)
        for input_t in input_sequence:
            combined = torch.cat([input_t, hidden_state], dim=1)
            hidden_state = self.linear(combined)
        return hidden_state


model = SimpleRNN()
torch.nn.init.constant_(model.linear.weight, 0.5)
torch.nn.init.constant_(model.linear.bias, 0.0)

for steps in (5, 10):
    model.zero_grad()
    output = model([torch.ones(1, 1) for _ in range(steps)])
    output.backward()
    print(f"{steps} steps: output = {output.item()}  bias.grad = {model.linear.bias.grad.item()}")

"""A first hour with tensors: making them, what they tell, operations, memory shared with numpy."""

import numpy as np
import torch

data = [[1, 2], [3, 4]]
x_data = torch.tensor(data)
np_array = np.array(data)
x_np = torch.from_numpy(np_array)
x_ones = torch.ones_like(x_data)
print(f"Ones Tensor: \n {x_ones} \n")
x_float = torch.zeros_like(x_data, dtype=torch.float)
print(x_data, x_np, x_float, sep="\n")

shape = (2, 3)
print(torch.ones(shape), torch.zeros(shape), torch.full(shape, 7), torch.eye(3), torch.arange(0, 10, 3), sep="\n")

tensor = torch.ones(3, 4)
print(f"Shape of tensor: {tensor.shape}")
print(f"Datatype of tensor: {tensor.dtype}")
print(f"Device tensor is stored on: {tensor.device}")
if torch.cuda.is_available():
    tensor = tensor.to("cuda")
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu"
tensor = tensor.to(device)

tensor = torch.ones(4, 4)
print(f"First row: {tensor[0]}", f"First column: {tensor[:, 0]}", f"Last column: {tensor[..., -1]}", sep="\n")
tensor[:, 1] = 0
print(tensor)
print(torch.cat([tensor, tensor, tensor], dim=1))
print(
    tensor @ tensor.T, tensor.matmul(tensor.T).equal(tensor @ tensor.T), tensor * tensor, tensor.mul(tensor), sep="\n"
)
aggregate = tensor.sum()
print(aggregate.item(), type(aggregate.item()))
print(tensor.add_(5))

t = torch.ones(5)
n = t.numpy()
t.add_(1)
print(f"t: {t}", f"n: {n}", sep="\n")
n = np.ones(5)
t = torch.from_numpy(n)
np.add(n, 1, out=n)
print(f"t: {t}", f"n: {n}", sep="\n")

x = torch.arange(12).reshape(3, 4)
print(
    x.view(-1), x.t().shape, x[x > 5], x[[0, 2]], x[:, ::2], x.sum(dim=0), x.float().mean(dim=1, keepdim=True), sep="\n"
)
print(
    torch.stack([x, x]).size(),
    x.unsqueeze(0).squeeze().shape,
    x.max(),
    x.argmax(),
    torch.where(x % 2 == 0, x, -x),
    sep="\n",
)
print(x.dtype, (x / 2).dtype, (x * 1.0).dtype, (x > 3).dtype, x.type(), type(x))

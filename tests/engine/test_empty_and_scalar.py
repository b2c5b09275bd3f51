"""Tensors without elements or without dimensions, negative dimensions and mixed dtypes, against PyTorch."""

import pytest
from known_tensors import cases, compare_expression

EXPRESSIONS = """
x.fill_diagonal_(1.)
torch.cat((torch.zeros(0),torch.zeros(0)))
torch.cat((torch.zeros(0,dtype=torch.int64),x))
torch.cat((x.half(),y.double()))
torch.stack((x,y.double()))
torch.stack((i,i*1.0))
torch.block_diag(x,torch.ones(2,dtype=torch.int64))
torch.block_diag()
torch.zeros(0,3).repeat(2,2)
torch.zeros(2,0,3).flatten(0,1)
torch.zeros(0,2).split(2)
torch.zeros(0,2).chunk(3)
torch.zeros(0,2).unbind()
torch.zeros(0,2).flip(0).roll(1,0)
torch.zeros(3,0)@torch.zeros(0,2)
torch.einsum('ij,jk->ik',torch.zeros(2,0),torch.zeros(0,3))
torch.zeros(0,3).nonzero()
torch.zeros(0,3)[torch.zeros(0,dtype=torch.bool)]
torch.zeros(0,3).gather(0,torch.zeros(0,2,dtype=torch.int64))
b.squeeze(dim=(0,1,2))
b.transpose(-1,-3)
b.unflatten(-1,(2,-1))
b.narrow(-2,-2,1)
b.movedim((0,-1),(-1,0))
b.diagonal(dim1=0,dim2=-1)
b.unbind(-2)
b.flip(-1,-2)
torch.cat((b,b),-2)
b.select(-1,-1)
b.take_along_dim(torch.zeros(2,3,1,dtype=torch.int64),-1)
s.view(1).squeeze(-1)
s.expand(2)
s.repeat(2)
s.flip(0)
s.roll(1)
s.roll(1,0)
s.transpose(0,0)
s.unbind()
s.cumsum(0)
s.index_select(0,torch.tensor([0,0]))
s.index_add(0,torch.tensor([0]),s)
s.index_fill(0,torch.tensor([0]),2.)
s.scatter_add(0,torch.tensor(0),s)
s.take(torch.tensor([0,0]))
s.masked_fill(torch.tensor(True),1.)
s.masked_select(torch.tensor([True,False]))
s.unfold(0,1,1)
s.tile(2)
s.repeat_interleave(3)
s.split(1)
s.chunk(1)
z=m*1;z.fill_diagonal_(2.);z
z=n.T*1;z.fill_diagonal_(2.,wrap=True);z
z=torch.zeros(7,2);z.fill_diagonal_(2.,wrap=True);z
z=torch.zeros(3);z.fill_diagonal_(2.)
z=torch.zeros(2,2,3);z.fill_diagonal_(2.)
x.reshape(3,-1).norm()
"""


@pytest.mark.torch
@pytest.mark.parametrize("text", cases(EXPRESSIONS))
def test_as_pytorch(text):
    compare_expression(text)

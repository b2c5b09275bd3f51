"""Diagonals and triangles, against PyTorch."""

import pytest
from known_tensors import cases, compare_expression

EXPRESSIONS = """
torch.block_diag(x,y)
torch.block_diag(v,s)
torch.block_diag(b)
x.tril()
x.tril(1)
x.triu(-1)
v.tril()
torch.tril_indices(3,3)
torch.tril_indices(3,4,1)
torch.triu_indices(3,4,-1)
torch.tril_indices(-1,4)
m.diagonal()
b.diagonal(1,0,2)
b.diagonal(0,1,1)
v.diagonal()
x.diagonal(5)
torch.diag(v)
torch.diag(v,1)
torch.diag(x)
torch.diag(x,-1)
torch.diag(b)
torch.diag_embed(x)
torch.diag_embed(x,1,0,2)
torch.diag_embed(x,0,0,0)
torch.diagflat(x)
torch.trace(m)
torch.trace(x)
torch.trace(b)
x.diagonal_scatter(torch.ones(2))
x.tril_()
z=x*1;z.tril_();z
z=x*1;z.triu_(1);z
x.detach().bool().tril()
torch.zeros(0,3).tril()
b.tril(-1)
torch.tril_indices(3,3,dtype=torch.int32)
torch.triu_indices(0,3)
torch.triu_indices(3,3,5)
torch.triu_indices(3,3,-5)
z=m*1;z.diagonal()[0]=5.;z
z=m*1;z.diagonal().mul_(2);z
m.diagonal(-1)
m.diagonal(-5)
b.diagonal(0,2,1)
b.diagonal(dim1=-1,dim2=0)
torch.diagonal(m,offset=1)
torch.diag_embed(v,-1)
torch.diag_embed(x,0,1,0)
torch.diag_embed(s)
torch.diag(s)
v.diag(-1)
torch.trace(i)
torch.trace(torch.ones(2,2,dtype=torch.int64))
x.diagonal_scatter(v[:2])
"""


@pytest.mark.torch
@pytest.mark.parametrize("text", cases(EXPRESSIONS))
def test_as_pytorch(text):
    compare_expression(text)

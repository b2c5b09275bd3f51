"""Borders around tensors, against PyTorch."""

import pytest
from known_tensors import cases, compare_expression

EXPRESSIONS = """
F.pad(x,(1,2))
F.pad(x,(1,2,0,1))
F.pad(x,(1,2),value=1.5)
F.pad(x,(-1,2))
F.pad(x,(-1,-2))
F.pad(x,(-2,-2))
F.pad(x,(1,))
F.pad(x,(1,1,1,1,1,1))
F.pad(x,(0,0))
F.pad(x,())
F.pad(s,(1,1))
F.pad(s,())
F.pad(i,(1,1))
F.pad(i,(1,1),value=1.5)
F.pad(x,(1,1),mode='reflect')
F.pad(x,(1,1),'reflect')
F.pad(x,(2,2),'reflect')
F.pad(x,(3,1),'reflect')
F.pad(b,(1,1),'reflect')
F.pad(b,(1,1,1,1),'reflect')
F.pad(b[None],(1,1,1,1),'reflect')
F.pad(b[None],(1,1,1,1),'replicate')
F.pad(b[None],(1,1,1,1,1,1),'replicate')
F.pad(b[None],(1,1,1,1,1,1),'reflect')
F.pad(b[None],(1,1,1,1,1,1),'circular')
F.pad(b[None,None],(1,1,1,1,1,1),'circular')
F.pad(x,(1,1),'replicate')
F.pad(x,(5,1),'replicate')
F.pad(x,(1,1),'circular')
F.pad(x,(4,1),'circular')
F.pad(x,(-1,1),'circular')
F.pad(b,(1,1),'circular')
F.pad(b[None],(1,1,1,2),'circular')
F.pad(v,(1,1),'reflect')
F.pad(v,(1,1),'replicate')
F.pad(v,(1,1),'circular')
F.pad(x,(1,1),'foo')
F.pad(x,(1,1),'reflect',1.)
F.pad(x,(-1,1),'reflect')
F.pad(x,(-1,1),'replicate')
F.pad(i[None],(1,1),'replicate')
torch.constant_pad_nd(x,(1,1),2.)
F.pad(x,(1,2)).grad_fn._saved_pad
F.pad(x,(1,1),'reflect').grad_fn._saved_padding
F.pad(x,(1,1),'reflect').grad_fn._saved_self
F.pad(torch.ones(0,3),(1,1),'reflect')
F.pad(torch.ones(2,0),(1,1),'replicate')
"""


@pytest.mark.torch
@pytest.mark.parametrize("text", cases(EXPRESSIONS))
def test_as_pytorch(text):
    compare_expression(text)

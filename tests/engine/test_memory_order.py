"""In which order the elements of results lie in memory, where the operands are transposed: beside PyTorch's."""

import itertools

import pytest
from expressions import attempted, split
from twin import compare

TURNED = """
import torch
t, b = torch.arange(6.).reshape(3, 2).t(), torch.arange(24.).reshape(2, 3, 4).permute(2, 0, 1)
c = torch.arange(6.).reshape(2, 3)
"""
RESULTS = split("""
t.cumsum(-1) | t.cumprod(0) | t.logcumsumexp(0) | t.softmax(0) | t.log_softmax(1) | torch.cat([t, t]) | torch.stack([t, t])
t.roll(1) | t.roll(1, 0) | t.masked_fill(t > 2, 0) | b.sum(0) | b.sum(1) | b.mean(1) | b.amax(0) | b.amin(1) | b.std(1) | b.cumsum(1)
c[:, [0, 1]] | c[[0, 1]] | t.flip(0) | t.flip((0, 1)) | b.flip(1) | t.sort(0)[0] | t.sort(1, descending=True)[1] | b.sort(1)[0]
t.index_add(0, torch.tensor([1, 0]), t) | t.index_add(1, torch.tensor([1]), t[:, :1]) | b.index_add(1, torch.tensor([0]), b[:, :1])
""")


@pytest.mark.torch
def test_results_have_the_strides_of_pytorch():
    compare(TURNED + attempted(f"({result}).stride()" for result in RESULTS))


@pytest.mark.torch
def test_reversed_turns_the_first_dimension():
    compare("import torch\nsee(reversed(torch.arange(6.).reshape(2, 3)).tolist())")


FORMATS = """
import torch
from torch import nn
four = torch.arange(24.).reshape(2, 3, 2, 2)
five = torch.arange(48.).reshape(2, 3, 2, 2, 2)
last, last_3d, kept, plain = torch.channels_last, torch.channels_last_3d, torch.preserve_format, torch.contiguous_format
turned, wide, three = four.transpose(1, 2), torch.arange(3.).expand(2, 3), torch.arange(24.).reshape(2, 3, 4)
arranged = four.contiguous(memory_format=last) if hasattr(four, "contiguous") else four
def laid(t): return t.stride(), t.tolist()
def same(make, of, **options): return make(of, **options).stride()
"""
ARRANGED = split("""
laid(four.contiguous(memory_format=last)) | laid(five.contiguous(memory_format=last_3d)) | laid(four.clone(memory_format=last))
arranged.contiguous(memory_format=last) is arranged | laid(arranged.contiguous()) | laid(turned.clone(memory_format=plain))
laid(turned.clone()) | laid(turned.clone(memory_format=kept)) | laid(wide.clone()) | laid(torch.clone(four, memory_format=last))
four.contiguous(memory_format=kept) is four | turned.contiguous(memory_format=kept) | three.contiguous(memory_format=last)
five.contiguous(memory_format=last) | four.contiguous(memory_format=last_3d) | four.contiguous(memory_format="a")
four.contiguous(memory_format=None) | four.clone(memory_format=1) | four.clone(memory_format=torch.float32)
[four.is_contiguous(memory_format=f) for f in (plain, last, last_3d, kept)] | arranged.is_contiguous(memory_format=last)
[torch.zeros(2, 1, 3, 3).is_contiguous(memory_format=f) for f in (plain, last)] | four.is_contiguous(memory_format=None)
[torch.zeros(2, 3, 1, 1).is_contiguous(memory_format=f) for f in (plain, last)] | three.is_contiguous(memory_format=last)
laid(four.to(memory_format=last)) | laid(four.to(torch.float64, memory_format=last)) | laid(four.to("cpu", memory_format=last))
four.to(memory_format=plain) is four | laid(turned.to(memory_format=plain)) | laid(turned.double()) | three.to(memory_format=last)
turned.to(torch.float64, memory_format=plain).stride() | torch.zeros(2, 1, 3, 3).to(memory_format=last).stride()
four.double(memory_format=last).stride() | four.float(memory_format=last).stride() | four.cpu(memory_format=last).stride()
four.type(torch.float64, memory_format=last).stride() | four.half(memory_format=plain).stride()
[same(f, four, memory_format=last) for f in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like, torch.randn_like)]
[same(f, turned) for f in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like, torch.randn_like)]
[same(f, turned, memory_format=plain) for f in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like)]
[same(f, wide) for f in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like)]
laid(torch.full_like(four, 2, memory_format=last)) | torch.randint_like(four, 2, memory_format=last).stride()
torch.zeros_like(three, memory_format=last) | torch.rand_like(three, memory_format=last) | torch.zeros_like(three, memory_format=3)
torch.empty(2, 3, 2, 2, memory_format=last).stride() | torch.empty((2, 3, 2, 2), memory_format=last).stride()
torch.empty(2, 3, 2, 2, 2, memory_format=last_3d).stride() | torch.empty(2, 3, memory_format=last) | torch.empty(2, memory_format=kept)
torch.zeros(2, 3, 2, 2, memory_format=last) | torch.ones(2, 3, memory_format=plain) | three.new_zeros((2, 3), memory_format=plain)
laid(torch.arange(24.).resize_(2, 3, 2, 2, memory_format=last)) | laid(four.clone().resize_(2, 3, 2, 2, memory_format=last))
torch.arange(24.).resize_(2, 3, 4, memory_format=last) | torch.arange(24.).resize_(2, 3, 4, memory_format=kept)
torch.arange(24.).resize_(2, 3, 4, memory_format=3) | torch.arange(24.).resize_() | torch.arange(24.).resize_("a")
torch.zeros(24).resize_as_(arranged).stride() | torch.zeros(24).resize_as_(arranged, memory_format=kept).stride()
torch.zeros(24).resize_as_(four, memory_format=last).stride() | three.dim_order() | arranged.dim_order()
nn.Conv2d(3, 4, 2).to(memory_format=last).weight.stride() | nn.Conv3d(3, 4, 2).to(memory_format=last_3d).weight.stride()
nn.Conv2d(3, 4, 2).to(torch.float64, memory_format=last).weight.stride() | nn.Linear(3, 4).to(memory_format=last).weight.stride()
torch.memory_format() | torch.layout() | (arranged * 2).stride() | arranged.view(-1) | (arranged + arranged).stride()
""")


@pytest.mark.torch
def test_new_tensors_are_laid_out_as_expanded_and_permuted_ones():
    shapes = [*itertools.product((1, 2, 3), repeat=3)]
    compare(
        f"""
import itertools, torch
for shape in {shapes}:
    for dims in itertools.permutations(range(4)):
        turned = torch.zeros(1, *shape).permute(dims)
        wide = turned.expand(*[3 if size == 1 else size for size in turned.shape])
        see(wide.clone().stride(), torch.zeros_like(wide).stride())
"""
    )


@pytest.mark.torch
@pytest.mark.parametrize("expression", ARRANGED)
def test_memory_formats_as_pytorch(expression):
    compare(FORMATS + attempted([expression]))


@pytest.mark.torch
def test_a_gradient_flows_through_a_copy_in_another_format():
    compare(
        FORMATS
        + """
x = torch.arange(24.).reshape(2, 3, 2, 2).requires_grad_()
for y in (x.contiguous(memory_format=last), x.clone(memory_format=last), x.to(memory_format=last)):
    see(y, y.stride())
    (y * y).sum().backward()
    see(x.grad, x.grad.stride())
"""
    )

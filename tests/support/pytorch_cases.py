"""Functions of torch: traced, and compared with what their programs compute."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import torch
from pytorch_functions import NAMES
from pytorch_random import random_function
from torch import Tensor
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from comet.interpreter import run
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.decompositions import decompositions
from comet.pytorch.importer import imported, refusal

Shape: TypeAlias = "tuple[int, ...]"
Function: TypeAlias = Callable[..., "Tensor | tuple[Tensor, ...]"]

IDS = torch.tensor([[3, 0, 8], [3, 3, 1]])


CASES: Mapping[str, tuple[str, tuple[Shape, ...]]] = {
    "broadcast": ("a[:, None] * b + 1", ((3,), (4,))),
    "alpha": ("torch.add(a, b, alpha=2) - 3 / b", ((4,), (4,))),
    "product": ("(a @ b.t()).t()", ((3, 4), (5, 4))),
    "vectors": ("a @ b", ((2, 3, 4), (4,))),
    "product with itself": ("a @ a.t()", ((3, 4),)),
    "square": ("a + a.t()", ((3, 3),)),
    "linear": ("F.linear(a, b, c)", ((2, 3, 8), (5, 8), (5,))),
    "softmax": ("torch.softmax(a, 1)", ((3, 7, 2),)),
    "layer norm": ("F.layer_norm(a, (8,), b, c)", ((3, 8), (8,), (8,))),
    "rms norm": (
        "a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-5) * b",
        ((3, 8), (8,)),
    ),
    "gelu": ("F.gelu(a) + F.silu(a) + F.relu(a)", ((3, 8),)),
    "tanh": ("a.tanh() * a.abs().sqrt() + a.exp2() / a.sigmoid()", ((5,),)),
    "rotary tables": (
        "rotary(a, torch.outer(torch.arange(5.0), b.exp()).cos().repeat(1, 2), "
        "torch.outer(torch.arange(5.0), b.exp()).sin().repeat(1, 2))",
        ((2, 3, 5, 8), (4,)),
    ),
    "powers of numbers": (
        "1e4 ** -a + 2**b + 10.0 ** (-torch.arange(0, 6, 2)[:, None] / 6)",
        ((3, 4), (4,)),
    ),
    "signs": (
        "(F.l1_loss(a, b), a.sign() * b, (ids - 2).sign(), (a * 0).sign())",
        ((3, 4), (3, 4)),
    ),
    "powers": ("a**2 + a.pow(3) + (a * a + 1) ** -0.5 + a**-1", ((5,),)),
    "large powers": ("a**9 + a**10 * a.pow(-11) + (ids - 4) ** 12 * a", ((3,),)),
    "powers of tensors": (
        "(a.abs() ** b, a ** (b * 3).round(), (a * 0) ** b.abs(), a ** (a * 0), "
        "torch.where((-a.abs() ** 0.5).abs().pow(b).isnan(), 1.0, 2.0), "
        "torch.where((-b.abs()).pow(b).isnan(), 1.0, 2.0))",
        ((7,), (7,)),
    ),
    "tangents": ("a.tan()", ((9,),)),
    "nearest whole numbers": (
        "((a * 9).round(), (torch.arange(-8.0, 9) / 2).round() * b, ids.round(), "
        "torch.where((b / 0).round().isinf(), b, 0.0))",
        ((3, 4), ()),
    ),
    "conditions and numbers": (
        "tuple(torch.where(c, a, b) for m in [a > 0] for c in (m == 2, m > 0, m < 2, "
        "m > -1, m >= 1, m == 0.5, m != 1, m <= (b > 0), m == ids[0]))",
        ((2, 3), (2, 3)),
    ),
    "views of all elements by strides": (
        "((a * 2).as_strided((2, 3, 4), (12, 4, 1)) + 1, "
        "a.as_strided_scatter(b, (3, 8), (8, 1)) * 2, "
        "F.group_norm(a[..., None], 3), F.adaptive_avg_pool2d(c, 1))",
        ((4, 6), (3, 8), (2, 3, 4, 5)),
    ),
    "batch normalization": (
        "aten._native_batch_norm_legit_functional(a, b, c, d, d.exp(), True, 0.1, "
        "1e-5)",
        ((2, 3, 4), (3,), (3,), (3,)),
    ),
    "a matrix and a vector": (
        "torch.addmv(c, a, b, beta=0.5) + F.hardtanh(c)",
        ((4, 5), (5,), (4,)),
    ),
    "clamped": ("a.clamp(-0.5, 0.5) + a.clamp(min=0.1)", ((9,),)),
    "sums": ("(a.sum(0), a.mean(1), a.sum())", ((4, 5),)),
    "extremes": ("(a.amax(1, keepdim=True), a.amin(0))", ((4, 5),)),
    "positions of minima": (
        "(*a.min(1), a.argmin(0, keepdim=True), (b * 0).argmin(), a.min(), "
        "*ids.min(-1))",
        ((4, 5), (3, 3)),
    ),
    "positions of maxima": (
        "(*a.max(1), a.argmax(0, keepdim=True), (b * 0).argmax(), a.max(), "
        "*ids.max(-1, keepdim=True), a[:, :1].max(1)[1])",
        ((4, 5), (3, 3)),
    ),
    "variance": ("(a.var(1), a.var(0, correction=0))", ((4, 5),)),
    "sum of an expanded axis": ("(a.expand(3, 4) + 0).sum(0)", ((1, 4),)),
    "product over an expanded axis": (
        "(a.expand(3, 4) @ b, b.t() @ a.expand(3, 4).t())",
        ((3, 1), (4, 2)),
    ),
    "views": ("a.view(2, 3, 4).transpose(0, 1).reshape(3, 8) + 1", ((6, 4),)),
    "an expanded axis cut otherwise": (
        "a.repeat_interleave(3, 0) + a.repeat(3, 1) + b.expand(6, 4) * a.repeat(3, 1)",
        ((2, 4), (4,)),
    ),
    "cut otherwise": ("(a * 2).reshape(3, 2) + b", ((2, 3), (3, 2))),
    "single elements": ("a.view(1, 10, 1).squeeze(0) * 2", ((2, 5),)),
    "slices": ("a[:, 1:3] + a[:, :2] + a[:, -1:]", ((3, 5),)),
    "steps": (
        "(a[::2] + a[1::2] * 2, a[:, ::2] + b, a[:, 1::3], a[:, 4::9], ids[:, ::2])",
        ((4, 5), (4, 3)),
    ),
    "steps that are replaced": (
        "(a.slice_scatter(b, 1, 0, 5, 2) * a, a.slice_scatter(c, 0, 1, 4, 2), "
        "torch.zeros(4, 7).slice_scatter(b, 1, 2, 7, 2) + 1)",
        ((4, 5), (4, 3), (2, 5)),
    ),
    "one position": ("a[:, 1] * a.select(0, 2)[1]", ((3, 4),)),
    "heads": ("heads(a, b, c)", ((2, 5, 8), (24, 8), (24,))),
    "concatenated": ("torch.cat([a, b * 2], 1)", ((2, 3), (2, 4))),
    "joined with negative parts": (
        "(torch.cat([a, -b, -a, b.exp()], 1), torch.cat([-a, -b], -1))",
        ((2, 3), (2, 4)),
    ),
    "concatenated with nothing": (
        "torch.cat([a[:, :0], a, b, b[:, 9:]], 1)",
        ((2, 3), (2, 4)),
    ),
    "gradient of nothing": (
        "aten.slice_backward(a[:, 3:], (2, 3), 1, 3, 3, 1) + a",
        ((2, 3),),
    ),
    "stacked": ("torch.stack([a, b], -1)", ((4, 5), (4, 5))),
    "stacked numbers": ("torch.stack([a.sum(), a.amax(), a[1]])", ((4,),)),
    "padded": (
        "(F.pad(a, (0, 2)) + 1, F.pad(a, (1, 2, -1, 1), value=2), F.pad(b, (2, 1)))",
        ((3, 4), (2, 1)),
    ),
    "padded conditions": (
        "torch.where(F.pad(a > 0, (1, 1), value=True) | (b > 0), b, 1.0)",
        ((3,), (5,)),
    ),
    "parts that are replaced": (
        "(a.slice_scatter(b, 1, 1, 3) * a, a.select_scatter(c, 0, -1) + 1)",
        ((3, 4), (3, 2), (4,)),
    ),
    "rotary": ("rotary(a, b, c)", ((2, 3, 5, 8), (5, 8), (5, 8))),
    "repeated heads": (
        "a @ b.repeat_interleave(3, 1).mT",
        ((1, 6, 5, 8), (1, 2, 4, 8)),
    ),
    "where": ("torch.where(a > 0, a, 0.0)", ((4, 5),)),
    "products and sums": (
        "a.lerp(b, 0.1) + torch.addcmul(a, b, b, value=0.5) - a.addcdiv(b, b.exp())",
        ((3, 5), (3, 5)),
    ),
    "fused": ("torch.ops.prims.fma(a, b, c)", ((3, 5), (5,), (3, 1))),
    "masks": ("a.masked_fill((b < 1) & ~(b == 2) | (b != b), -1.0)", ((5,), (5,))),
    "triangle": ("a.masked_fill(torch.ones(5, 5).tril() == 0, -1.0)", ((2, 5, 5),)),
    "numbers": (
        "a + torch.ones(2, 5) * torch.arange(1, 11, 2) + torch.full_like(a, 3)",
        ((2, 5),),
    ),
    "halves": ("(a.half() @ b.half()).float()", ((3, 4), (4, 2))),
    "embedding": ("F.embedding(ids, a) * 2", ((9, 4),)),
    "rows": ("a[ids] + a[ids - 9]", ((9, 4),)),
    "rows of a row each": ("a[ids[0].clamp(max=2)] * a", ((3, 4),)),
    "rows by one column": ("a[ids[:, 0]] + a[ids[1, 1:]]", ((9, 4),)),
    "positions of several axes": (
        "(a[:, ids] * 2, a[:, ids[0], ids.int() - 9], a[ids[0, 1:2] - 9, :, ids])",
        ((9, 9, 9),),
    ),
    "positions of one axis": ("a.index_select(-1, ids[0]) + b", ((2, 9), (2, 3))),
    "several of each row": (
        "(a.gather(1, ids), b.gather(-1, ids[:, :, None].expand(-1, -1, 7)))",
        ((3, 9), (2, 3, 9)),
    ),
    "add to several of each row": (
        "(a.scatter_add(1, ids, b), a.scatter_add(0, ids[:, :1] * 0, b))",
        ((2, 9), (2, 3)),
    ),
    "add to positions of axes": (
        "(a.index_put((ids, ids - 9), b, True), a.index_add(1, ids[0], c), "
        "aten.index_put(a, [None, ids[1]], c[0], True))",
        ((9, 9), (2, 3), (9, 3)),
    ),
    "rows that are set": (
        "(a.index_copy(1, ids[0], b), "
        "aten.index_put(a, [None, ids[0], ids[0] // 3], b[..., 0]), "
        "aten.index_put(c, [ids[1:, 1:]], b[:1, :2, 0]))",
        ((2, 9, 3), (2, 3, 3), (9,)),
    ),
    "set one position": (
        "(a.index_copy(1, ids[0, :1], b), "
        "aten.index_put(a, [ids[0, 2] - 9, ids[:1, 1], None], b[1, 0]) * 2)",
        ((9, 4, 2), (9, 1, 2)),
    ),
    "set where conditions hold": (
        "(a.index_put((a > 0,), b.sum()) + 1, aten.index_put(b, [c > 0], b[:1, 0]))",
        ((2, 9), (3, 4), (3,)),
    ),
    "positions between": (
        "(F.interpolate(a, scale_factor=2), F.interpolate(a, (3, 7)), "
        "F.interpolate(a, scale_factor=2, mode='bilinear'), "
        "F.interpolate(a, (5, 3), mode='bilinear', align_corners=True))",
        ((1, 2, 2, 3),),
    ),
    "rolled": (
        "(a.roll((1, -2), (0, 1)) + b, a.roll(3), a.roll(3, 0))",
        ((3, 4), (4,)),
    ),
    "copied": ("torch.empty(3, 4).copy_(a) + b", ((4,), (3, 4))),
    "one row of conditions": ("torch.where((a > b)[1], a, b)", ((3, 4), (3, 4))),
    "the only row": ("a[ids * 0] + a", ((1, 4),)),
    "gradient of the only row": (
        "aten.embedding_dense_backward(a, ids * 0, 1, -1, False) + b",
        ((2, 3, 4), (1, 1, 4)),
    ),
    "diagonal of one": ("torch.diagflat(a)", ((),)),
    "axis of a number": ("torch.log_softmax(a, 0) + a.sum(-1, keepdim=True)", ((),)),
    "one of each row": ("a.gather(1, ids[:, None]) * 2", ((2, 9, 3),)),
    "store one of each row": (
        "a.scatter(-2, ids[:, None], b) + a.scatter_add(1, ids[:, None], b)",
        ((2, 9, 3), (2, 1, 3)),
    ),
    "cross entropy": ("F.cross_entropy(a, ids, reduction='none')", ((2, 9, 3),)),
    "small logarithms": ("(a * 1e-5).log1p() + (b * 1e-5).expm1()", ((9,), (9,))),
    "large logarithms": ("(a / 0).abs().log1p().isinf() * b.expm1()", ((3,), (3,))),
    "elu": ("F.elu(a * 100) + F.normalize(b, dim=0)", ((9,), (9,))),
    "conditions": (
        "torch.where((a > 0).any(1, keepdim=True) ^ (b / 0).isnan(), a, -b)",
        ((4, 3), (4, 3)),
    ),
    "sums of conditions": (
        "torch.where(((a > 0) + (b > 0)) * (a / 0).isfinite().logical_not(), a, b)",
        ((4, 3), (4, 3)),
    ),
    "counts": ("((ids != 3).sum(1), a.sum() / (a > 0).sum())", ((4, 5),)),
    "integers": (
        "((a * 9).long().sum(0), ids.abs().amax(1), (-ids).amin(), ids[:, 1])",
        ((4, 3),),
    ),
    "one of a vector": ("a[ids.flatten()[1:2]]", ((9, 4),)),
    "several positions": (
        "(a.scatter(1, ids, 2.0), a.scatter(1, ids, b), c.scatter(0, ids[:2], d))",
        ((2, 9), (2, 3), (9, 3), (2, 3)),
    ),
    "experts": (
        "(*a.topk(8), b.topk(2, 0, largest=False)[0], a.topk(1)[1])",
        ((2, 9), (4, 3)),
    ),
    "chosen of equal ones": (
        "(a * 0).scatter(1, (a * 0).log().topk(4)[1], 1.0).sum(1)",
        ((2, 8),),
    ),
    "a router": (
        "torch.zeros(2, 9).scatter(1, a.softmax(1).topk(2, 1)[1], b)",
        ((2, 9), (2, 2)),
    ),
    "cross entropy of some": (
        "F.cross_entropy(a, ids, ignore_index=3)",
        ((2, 9, 3),),
    ),
    "embedding gradient": (
        "aten.embedding_dense_backward(a, ids, 9, -1, False)",
        ((2, 3, 4),),
    ),
    "embedding gradient with padding": (
        "aten.embedding_dense_backward(a, ids, 9, 3, False)",
        ((2, 3, 4),),
    ),
    "arguments": ("(a.t(), a.t() @ b, b)", ((2, 5), (2, 3))),
    "attention": ("attention(a, b, c)", ((2, 5, 8), (2, 7, 8), (2, 7, 4))),
    "masked attention": (
        "attention(a, b, b, c)",
        ((1, 2, 7, 8), (1, 2, 7, 8), (1, 7, 7)),
    ),
    "hidden keys": (
        "attention(a, b, a, c.tril() + 1 > 0)",
        ((2, 7, 8), (2, 7, 8), (7, 7)),
    ),
    "queries without keys": (
        "gradients(a, b, c, d, torch.ones(7, 7).tril(-1) > 0)",
        ((2, 7, 8), (2, 7, 8), (2, 7, 4), (2, 7, 4)),
    ),
    "queries with infinite masks": (
        "attention(a, b, b, torch.ones(7, 7).tril(-1).log())",
        ((2, 7, 8), (2, 7, 8)),
    ),
    "queries with low masks": (
        "attention(a, b, b, torch.ones(7, 7).tril(-1).log().clamp(-3e38))",
        ((2, 7, 8), (2, 7, 8)),
    ),
    "shared keys": (
        "attention(a, b, c, is_causal=True, enable_gqa=True)",
        ((2, 6, 7, 8), (2, 2, 7, 8), (2, 2, 7, 8)),
    ),
    "gradients of attention": (
        "gradients(a, b, c, d)",
        ((2, 6, 7, 8), (2, 2, 7, 8), (2, 2, 7, 8), (2, 6, 7, 8)),
    ),
    "running sums": (
        "(a.cumsum(0) + 1, a[:, :1].cumsum(-1), ids.cumsum(1), (b > 0).cumsum(-2), "
        "b.cumsum(1), c.cumsum(0))",
        ((4, 5), (2, 130, 3), ()),
    ),
    "running sums beside infinity": (
        "torch.where(torch.cat([a, b / 0, a], 1).cumsum(1).isfinite(), 1.0, 2.0)",
        ((2, 3), (2, 1)),
    ),
    "flipped": ("(a.flip(0, -1) * b * a, a[:1].flip(0), ids.flip(1))", ((3, 4), (4,))),
    "whole numbers": (
        "((a * 9).trunc() + (b * 9).floor() * (a * 1e9).ceil(), "
        "torch.where((a / 0).floor().isinf(), a, b), ids.floor())",
        ((3, 4), (3, 4)),
    ),
    "quotients of integers": (
        "tuple(torch.div(n, d, rounding_mode=r) * 1.0 for n in (ids * 7**14 - 5, "
        "-ids) for d in (1, 3, 2097152) for r in ('floor', 'trunc')) + "
        "((ids - 4) % 3 + a, torch.fmod((4 - ids).int(), 5) + a, "
        "torch.div(a, 0.3, rounding_mode='floor'))",
        ((3,),),
    ),
    "normalized by given statistics": (
        "aten._native_batch_norm_legit_no_training(a, b, c, d, d.exp(), 0.1, 1e-5)[0]",
        ((2, 3, 4, 2), (3,), (3,), (3,)),
    ),
    "gradients of weights with norms": (
        "aten._weight_norm_interface_backward(a, b, c, b.norm(dim=(0, 1), "
        "keepdim=True), 2)",
        ((2, 3, 4), (2, 3, 4), (1, 1, 4)),
    ),
    "remainders": (
        "(a.remainder(0.3), a.fmod(b), a % -b, a.fmod(-0.25))",
        ((3, 4), (3, 4)),
    ),
    "roots": ("a.abs() ** 0.3 + (a * 0) ** 1.5 + (b * b) ** -1.7", ((5,), (5,))),
    "products of a row": (
        "(a.prod(0), a.prod(), b.prod(1, keepdim=True), ids.prod(1))",
        ((2, 4), (3, 5)),
    ),
    "lists": (
        "(*torch._foreach_add([a, b], [c, d], alpha=2), "
        "*torch._foreach_sqrt([c * c, d * d]), "
        "*torch._foreach_addcdiv([a, b], [c, d], [c.exp(), d.exp()], 0.5), "
        "*torch._foreach_mul([a, b], [2.0, 3.0]), *torch._foreach_pow(2.0, [a, b]))",
        ((3,), (2, 4), (3,), (2, 4)),
    ),
    "patches": ("convolved(a, b, c, 2)", ((2, 3, 8, 4), (5, 3, 2, 2), (5,))),
    "patches with a rest": ("convolved(a, b, c, 3)", ((2, 3, 8), (5, 3, 3), (5,))),
    "patches with padding": ("convolved(a, b, None, 4, 2)", ((2, 3, 8), (5, 3, 4))),
    "products of channels": ("convolved(a, b)", ((2, 3, 5, 4), (5, 3, 1, 1))),
    "a kernel shorter than its stride": (
        "(*convolved(a, b, None, 2), *convolved(a, b, None, 3, 1))",
        ((2, 3, 5, 4), (5, 3, 1, 1)),
    ),
    "convolution": ("convolved(a, b, c, 1, 1)", ((2, 4, 7), (6, 4, 3), (6,))),
    "a convolution with a stride": (
        "(*convolved(a, c, None, 2, 1), *convolved(b, c, d, 2, 1))",
        ((2, 4, 7), (2, 4, 8), (6, 4, 3), (6,)),
    ),
    "a stride that divides nothing": (
        "(*convolved(a, c, None, 2, 1), *convolved(b, c, None, 3, 2))",
        ((2, 2, 12), (1, 2, 11), (3, 2, 5)),
    ),
    "a sum of each channel": (
        "convolved(a, b, c, 1, 3, 1, 6)",
        ((2, 6, 9), (6, 1, 4), (6,)),
    ),
    "several sums of each channel": (
        "convolved(a, b, None, 2, 1, 1, 4)",
        ((2, 4, 9), (8, 1, 3)),
    ),
    "convolutions of groups": (
        "(*convolved(a, b, None, 1, 1, 1, 2), *convolved(a, b, None, 2, 1, 1, 2))",
        ((2, 4, 6, 5), (6, 2, 3, 3)),
    ),
    "a kernel with steps": (
        "convolved(a, b, None, 1, 2, 2)",
        ((1, 4, 9), (6, 4, 3)),
    ),
    "a kernel longer than its input": (
        "(*convolved(a, b, None, 1, 3), *convolved(a[:, :, 2:], b, None, 1, 3))",
        ((1, 2, 3), (3, 2, 7)),
    ),
    "one result": ("convolved(a, b)", ((1, 2, 3), (3, 2, 3))),
    "means of blocks": (
        "(*averaged(a, [2], [2], [0], False, True, None), F.adaptive_avg_pool2d(b, 2), "
        "*averaged(a, [2, 1], [2, 1], [0], False, True, 3), F.avg_pool1d(b[0], 3))",
        ((2, 3, 4, 6), (1, 2, 4, 6)),
    ),
    "means of windows": (
        "(*averaged(a, [3], [1], [1], False, True, None), "
        "*averaged(b, [3], [2], [1], False, False, None), "
        "*averaged(a, [5, 4], [1], [0], False, True, None))",
        ((2, 5, 4), (1, 2, 9, 7)),
    ),
    "means of windows that end behind": (
        "(*averaged(a, [2, 3], [2, 3], [0, 1], True, True, None), "
        "*averaged(a, [3], [2], [1], True, False, None))",
        ((2, 8, 7),),
    ),
    "windows along an axis": (
        "(a.unfold(1, 2, 2) * 2, a.unfold(-2, 2, 3) + 1, a.unfold(1, 3, 2) * b, "
        "c.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).flatten(3) * 2)",
        ((5, 7), (3,), (2, 3, 4, 6)),
    ),
    "diagonals": (
        "(a.diagonal() * 2, a.diagonal(-3) + 1, c.diagonal(1, 2, 0) * 2, a.trace(), "
        "c.diagonal(-1, -1, 0) * 3, a.diagonal_scatter(b[:3], 2, 1, 0), "
        "c.diagonal_scatter(d, 1, 0, -1), torch.eye(5, dtype=torch.bool) * b.diag())",
        ((5, 7), (5,), (3, 2, 4), (2, 3)),
    ),
    "numbers among boundaries": (
        "(torch.bucketize((a * 2).round(), torch.arange(-2.0, 2), right=True), "
        "torch.bucketize(ids, torch.arange(4) * 2), torch.bucketize(a / 0, a[0]), "
        "torch.searchsorted(torch.arange(12.0).view(3, 4) - 5, a, side='right'))",
        ((3, 4),),
    ),
    "sums and means of what an index names": (
        "(a.scatter_reduce(1, ids, b, 'mean'), a.scatter(1, ids.repeat(1, 4), 0.5), "
        "*(a.scatter_reduce(1, ids, b, by, include_self=False) for by in "
        "('sum', 'mean')))",
        ((2, 9), (2, 3)),
    ),
    "weights and activations in bytes": (
        "(F.linear(a, (ids * 9 - 40).to(torch.int8).to(a.dtype)) * b, "
        "(a * 9).clamp(-128, 127).to(torch.int8), (ids.to(torch.int8) > 2) * a)",
        ((2, 3), (2,)),
    ),
    "distances": (
        "tuple(x for p in (1.0, 2.0) for x in (aten._cdist_forward(a, b, p, None), "
        "aten._cdist_backward(c, a, b, p, aten._cdist_forward(a, b, p, None)), "
        "aten._cdist_forward(a, a, p, None)))",
        ((2, 3, 4), (2, 5, 4), (2, 3, 5)),
    ),
    "maxima of windows": (
        "(*largest(a, [2], [2], [0], [1], False), *largest(b.relu(), [3], [2], [1], "
        "[1], False), *largest(a * 0, [3], [1], [1], [1], True))",
        ((2, 4, 6), (1, 2, 5, 6)),
    ),
}
"""Functions that have a translation, and the shapes of a to d; ids are IDS."""

REFUSED: Mapping[str, tuple[str, tuple[Shape, ...]]] = {
    "aten.sinh": ("a.sinh() + 1", ((3,),)),
    "aten.multilabel_margin_loss_forward": (
        "F.multilabel_margin_loss(a, ids % 4 - 1)",
        ((2, 3),),
    ),
    "sums of 131 positions": ("a.cumsum(0)", ((131,),)),
    "a product of 9 numbers": ("a.prod(0)", ((9, 2),)),
    "a division of i64 by -2": ("ids % -2 + a", ((3,),)),
    "a power with the exponent 65": ("a**65", ((4,),)),
    "the type torch.float64, which is none of": ("a.double() + 1", ((4,),)),
    "6364136223846793005 in i64": ("(ids * 6364136223846793005) % 3 + a", ((3,),)),
    "0.5 in i64": ("torch.arange(0.5, 3, dtype=torch.int64) + a", ((3,),)),
    "9 positions of an axis": ("a.scatter(1, ids.repeat(1, 3), a)", ((2, 9),)),
    "the 9 largest": ("a.topk(9, 1)[0]", ((2, 10),)),
    "distances with the exponent 3.0": (
        "aten._cdist_forward(a, a, 3.0, None)",
        ((3, 4),),
    ),
    "a scatter of f32 by amax": ("a.scatter_reduce(1, ids, a, 'amax')", ((2, 9),)),
    "one position of a vector of i1": ("(a > 0)[1] | (b > 0)", ((9,), (4,))),
    "2 of 9000000 positions that are set": (
        "torch.zeros(9000000).index_put((ids[0][:2],), a)",
        ((2,),),
    ),
    "an index of conditions": ("a[a > 0] + 1", ((2, 9),)),
    "a tensor without elements": ("a + 1", ((0, 2),)),
    "a transposed convolution": (
        "F.conv_transpose1d(a, b)",
        ((1, 2, 5), (2, 3, 3)),
    ),
    "a convolution of 16 products, more than 9": (
        "F.conv2d(a, b)",
        ((1, 2, 5, 5), (3, 2, 4, 4)),
    ),
    "a convolution with steps in results and kernel": (
        "F.conv1d(a, b, stride=2, dilation=2)",
        ((1, 2, 9), (3, 2, 3)),
    ),
    "a convolution of i64": (
        "F.conv1d(ids[None], ids[None, :, :1]) + a",
        ((1, 1, 3),),
    ),
    "a pooling of 16 parts": ("F.avg_pool2d(a, 4, 1)", ((2, 9, 9),)),
    "a pooling of integers, or with steps": (
        "F.max_pool2d(a, 2, dilation=2)",
        ((2, 5, 5),),
    ),
    "a concatenation with a single number": ("torch.cat([a.sum()[None], a])", ((4,),)),
}
"""The message of a refusal, and a function that is refused with it."""


def compared(function: Function, inputs: tuple[Tensor, ...]) -> float:
    """Return the largest error of the program of a function."""
    pure = cast(Function, functionalize(function))
    table = decompositions()
    traced = make_fx(pure, decomposition_table=table)  # pyright: ignore[reportArgumentType]
    graph = traced(*inputs).graph
    graph.eliminate_dead_code()
    for node in graph.nodes:
        if node.op == "call_function" and (reason := refusal(node)):
            raise UnsupportedError(reason)
    program = imported(graph, "main")
    program.module.verify()
    pairs = zip(program.arguments, inputs, strict=True)
    values = [layout.stored(tensor) for layout, tensor in pairs]
    if program.computes:
        found = run(program.module, "main", [x.double().numpy() for x in values])
        values += [torch.as_tensor(x) for x in found]
    wanted = function(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    errors = [0.0]
    for output, expected in zip(program.outputs, wanted, strict=True):
        assert output is not None
        actual = output.of(values)
        assert actual.shape == expected.shape
        errors.append(((actual - expected).abs().max() / expected.abs().max()).item())
    return max(errors)


def outcome(text: str, shapes: tuple[Shape, ...]) -> float | str:
    """Return the error of a case, or why it is refused."""
    inputs = dict(zip("abcd", map(torch.randn, shapes)))
    if "ids" in text:
        inputs["ids"] = IDS
    function = cast(Function, eval(f"lambda {', '.join(inputs)}: {text}", NAMES))
    try:
        return compared(function, tuple(inputs.values()))
    except UnsupportedError as error:
        return str(error)


def random_outcomes(seeds: range) -> dict[str, float | str]:
    """Return the errors of random functions, or why they are refused."""
    found: dict[str, float | str] = {}
    for seed in seeds:
        function, inputs = random_function(seed)
        try:
            found[f"random {seed}"] = compared(function, tuple(inputs))
        except UnsupportedError as error:
            found[f"random {seed}"] = str(error)
    return found


def all_outcomes(seeds: range) -> dict[str, float | str]:
    """
    Return an outcome for each case, and for a random function of each seed.

    That is the largest error of the reference interpreter, as a fraction of the largest
    magnitude of torch's result, or the refusal.
    """
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    cases = {**CASES, **REFUSED}
    outcomes = {name: outcome(*case) for name, case in cases.items()}
    return outcomes | random_outcomes(seeds)

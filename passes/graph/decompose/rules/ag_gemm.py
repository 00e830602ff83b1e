"""`ag_gemm`: a b, on all of a; the all-gather of a follows from the sharding of a."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.collective.spmd import sharding_attr
from comet.passes.graph.decompose.rules import gemm
from comet.passes.graph.decompose.site import Site
from comet.passes.sharding.boundary import says_sharding
from comet.passes.sharding.shardings import SHARD


def decompose(named: Operation, site: Site) -> SSAValue:
    """Emit a contract that is not sharded, if there are ranks that could share it."""
    product = gemm.decompose(named, site)
    func = named.parent_op()
    assert isinstance(func, FuncOp)
    assert isinstance(product.owner, Operation)
    if SHARD not in named.attributes and says_sharding(func):
        product.owner.attributes[SHARD] = sharding_attr({})
    return product

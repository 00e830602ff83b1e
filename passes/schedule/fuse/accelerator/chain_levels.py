"""The level of each value in an accelerator's chain of memories."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from comet.dialects.compound import ContractOp
from comet.passes.analysis.memory_chain import MemoryChain
from comet.passes.schedule.tile_tree import Aliases, Levels, Node, ops_of, resolve


@dataclass(frozen=True)
class ChainLevels(Levels):
    """Values are at the level of their node, operands of products in own buffers."""

    chain: MemoryChain
    resident: frozenset[SSAValue]
    """Values that stay in the cores between two nodes."""
    aliases: Aliases

    def at(self, value: SSAValue, node: Node | None) -> str:
        chain = self.chain
        if node is None:
            return chain.root
        if node.level != chain.out:
            return chain.out if value in self.resident else node.level
        for op in ops_of(node):
            if isinstance(op, ContractOp) and value is resolve(op.lhs, self.aliases):
                return chain.lhs
            if isinstance(op, ContractOp) and value is resolve(op.rhs, self.aliases):
                return chain.rhs
        return chain.out

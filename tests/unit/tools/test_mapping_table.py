"""The table of a mapping: one row a node, indented like the tree, costs where known."""

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from comet.dialects.comet import Comet, MappingOp
from comet.dialects.cost import Cost
from comet.tools.mapping_table import format_table, mapping_rows

MAPPING = """
comet.mapping {
  comet.tile temporal permutation "MNK" <
    A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
    C by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 4, K = 1]
  > attributes {comet.cost = #cost.estimate<paper, cycles, latency = 12345.6>} {
    comet.binding sequential
    comet.tile spatial permutation "MNK" <
      A by GEMM, DRAM -> GB, 16 bits, [M = 1, N = 1, K = 1] x [M = 1, N = 1, K = 1]
    > {
      comet.operation gemm "GEMM" primitive <M = 1, N = 16, K = 16> steps <
        A[M = 1, N = 16, K = 16],
        C[M = 1, N = 16, K = 16]
      >
    }
    comet.collective allreduce "c" at "GB" in "R" out "R" dimension "N"
      src ["GB"] dest ["GB"] precision 16 reduction max spatial_factor 4
  }
}
"""

TABLE = """\
node         where      factors        moves or computes  cycles
-----------  ---------  -------------  -----------------  ------
temporal     DRAM > GB  N=4 M=8        A C                12,346
  spatial    DRAM > GB  -              A
    gemm                M=1 N=16 K=16  GEMM
  allreduce  GB                        R (max)"""


def test_a_mapping_as_a_table():
    context = Context()
    for dialect in (Builtin, Comet, Cost):
        context.load_dialect(dialect)
    module = Parser(context, MAPPING).parse_module()
    mapping = next(op for op in module.walk() if isinstance(op, MappingOp))
    assert format_table(tuple(mapping_rows(mapping.root))) == TABLE

"""
The COMET files as IR, one to one: problem, mapping tree and constants.

The `arch` dialect mirrors the architecture file. A module has at most one
`comet.problem`, one `comet.mapping` and one `comet.constants`. Constants are replaced
by their numbers; the table of constants is kept.

The verifiers check that the files are *well formed*: lists of equal length, known
names, bindings where the tool reads them. They do not check that a mapping is *legal*
for an architecture: every file set that the COMET tool accepts can be represented, also
one that breaks its rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Dialect, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import HasParent, NoTerminator
from xdsl.utils.exceptions import VerifyException

from comet.dialects.comet.attributes import (
    AccessesAttr,
    BindingKindAttr,
    CollectiveKindAttr,
    Compute,
    ComputeAttr,
    EntriesAttr,
    MovedTensor,
    OperationKindAttr,
    ReductionKindAttr,
    Sizes,
    SizesAttr,
    Step,
    StepsAttr,
    TileKindAttr,
)
from comet.dialects.comet.problem import ConstantsOp, DeclareOp, ProblemOp, names_attr
from comet.kinds import (
    BindingKind,
    CollectiveKind,
    OperationKind,
    ReductionKind,
    TileKind,
)

UNPRICED = "comet.unpriced"
"""The attribute of a mapping with the reason why the COMET tool cannot price it."""


def _unit(flag: bool) -> UnitAttr | None:
    return UnitAttr() if flag else None


@irdl_op_definition
class BindingOp(IRDLOperation):
    """
    An inter-tile binding. It is *before* the node that it binds to the next sibling.

    ```mlir
    comet.binding sequential
    ```
    """

    name = "comet.binding"

    kind = prop_def(BindingKindAttr)

    traits = lazy_traits_def(lambda: (HasParent(TileOp),))

    assembly_format = "$kind attr-dict"

    def __init__(self, kind: BindingKind):
        super().__init__(properties={"kind": BindingKindAttr(kind)})


@irdl_op_definition
class OperationOp(IRDLOperation):
    """
    A leaf of the mapping: one operation on one compute unit.

    `primitive` is the tile of one issue to the unit, `steps` the tile of every tensor
    per innermost iteration. `scale` is parsed by the tool and never used.

    ```mlir
    comet.operation gemm "GEMM" primitive <M = 1, N = 16, K = 16> steps <
      A[M = 1, N = 16, K = 16],
      C[M = 1, N = 16, K = 16]
    > compute <[M = 1], rmw, specd>
    ```
    """

    name = "comet.operation"

    kind = prop_def(OperationKindAttr)
    operation = prop_def(StringAttr)
    primitive = prop_def(SizesAttr)
    steps = prop_def(StepsAttr)
    compute = opt_prop_def(ComputeAttr)
    scale = opt_prop_def(DictionaryAttr)

    traits = lazy_traits_def(lambda: (HasParent(TileOp),))

    assembly_format = (
        "$kind $operation `primitive` $primitive `steps` $steps "
        "(`compute` $compute^)? (`scale` $scale^)? attr-dict"
    )

    def __init__(
        self,
        kind: OperationKind,
        operation: str,
        primitive: Sizes,
        steps: Sequence[Step],
        compute: Compute | None = None,
        scale: Mapping[str, str] | None = None,
    ):
        super().__init__(
            properties={
                "kind": OperationKindAttr(kind),
                "operation": StringAttr(operation),
                "primitive": SizesAttr(primitive),
                "steps": StepsAttr(tuple(steps)),
                "compute": None if compute is None else ComputeAttr(compute),
                "scale": None
                if scale is None
                else DictionaryAttr({k: StringAttr(v) for k, v in scale.items()}),
            }
        )

    def verify_(self) -> None:
        if self.scale is None:
            return
        for name, value in self.scale.data.items():
            if not isinstance(value, StringAttr):
                raise VerifyException(
                    f"'{self.name}' op the scale of '{name}' is not a string"
                )


@irdl_op_definition
class CollectiveOp(IRDLOperation):
    """
    A collective between the instances of one level.

    `precision` is in bits; without `spatial_factor` the tool takes the number of
    instances of `src`. `dimension` matters to gather and scatter only.

    ```mlir
    comet.collective allreduce "c1" at "GB" in "R" out "R" dimension "N"
      src ["GB"] dest ["GB"] precision 16 reduction max
    ```
    """

    name = "comet.collective"

    kind = prop_def(CollectiveKindAttr)
    tag = prop_def(StringAttr)
    target = prop_def(StringAttr)
    in_tensor = prop_def(StringAttr)
    out_tensor = prop_def(StringAttr)
    dimension = opt_prop_def(StringAttr)
    src = prop_def(ArrayAttr[StringAttr])
    dest = prop_def(ArrayAttr[StringAttr])
    precision = prop_def(IntegerAttr[I64])
    reduction_op = opt_prop_def(ReductionKindAttr)
    spatial_factor = opt_prop_def(IntegerAttr[I64])
    wb_output = opt_prop_def(UnitAttr)

    traits = lazy_traits_def(lambda: (HasParent(TileOp),))

    assembly_format = (
        "$kind $tag `at` $target `in` $in_tensor `out` $out_tensor "
        "(`dimension` $dimension^)? `src` $src `dest` $dest `precision` $precision "
        "(`reduction` $reduction_op^)? (`spatial_factor` $spatial_factor^)? "
        "(`wb_output` $wb_output^)? attr-dict"
    )

    def __init__(
        self,
        kind: CollectiveKind,
        tag: str,
        target: str,
        in_tensor: str,
        out_tensor: str,
        src: Sequence[str],
        dest: Sequence[str],
        precision: int,
        *,
        dimension: str | None = None,
        reduction_op: ReductionKind | None = None,
        spatial_factor: int | None = None,
        wb_output: bool = False,
    ):
        super().__init__(
            properties={
                "kind": CollectiveKindAttr(kind),
                "tag": StringAttr(tag),
                "target": StringAttr(target),
                "in_tensor": StringAttr(in_tensor),
                "out_tensor": StringAttr(out_tensor),
                "dimension": None if dimension is None else StringAttr(dimension),
                "src": names_attr(src),
                "dest": names_attr(dest),
                "precision": IntegerAttr(precision, i64),
                "reduction_op": None
                if reduction_op is None
                else ReductionKindAttr(reduction_op),
                "spatial_factor": None
                if spatial_factor is None
                else IntegerAttr(spatial_factor, i64),
                "wb_output": _unit(wb_output),
            }
        )

    @property
    def bits(self) -> int:
        """Bits per element of the collected tensor."""
        return self.precision.value.data

    def verify_(self) -> None:
        if not 0 < self.bits < 256:
            raise VerifyException(
                f"'{self.name}' op {self.tag.data}: a precision of {self.bits} bits "
                "is out of range, the file format holds 1 to 255"
            )
        if not self.src.data or not self.dest.data:
            raise VerifyException(
                f"'{self.name}' op {self.tag.data}: src and dest need a level each"
            )


@irdl_op_definition
class TileOp(IRDLOperation):
    """
    A data-movement node: tensors that move between two levels, in time or space.

    The first letter of `permutation` is the innermost loop. Every entry gives a factor
    for every dimension of the permutation, in one row if temporal and in one row per
    mesh axis if spatial. The body lists child nodes; with two or more of them each but
    the last is preceded by its binding, or none is.

    ```mlir
    comet.tile temporal permutation "MNK" <
      A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1]
    > { ... }
    ```
    """

    name = "comet.tile"

    kind = prop_def(TileKindAttr)
    permutation = prop_def(StringAttr)
    columns = prop_def(EntriesAttr)
    body = region_def("single_block")

    traits = lazy_traits_def(lambda: (HasParent(TileOp, MappingOp), NoTerminator()))

    assembly_format = (
        "$kind `permutation` $permutation $columns attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        kind: TileKind,
        permutation: str,
        entries: Sequence[MovedTensor],
        body: Region,
    ):
        super().__init__(
            properties={
                "kind": TileKindAttr(kind),
                "permutation": StringAttr(permutation),
                "columns": EntriesAttr(tuple(entries)),
            },
            regions=[body],
        )

    @property
    def entries(self) -> tuple[MovedTensor, ...]:
        """The tensors that this node moves."""
        return self.columns.data

    @property
    def is_temporal(self) -> bool:
        """Whether the iterations of this node follow each other in time."""
        return self.kind.data is TileKind.TEMPORAL

    @property
    def children(self) -> tuple[TileOp | OperationOp | CollectiveOp, ...]:
        """The child nodes, without the bindings between them."""
        return tuple(
            op
            for op in self.body.block.ops
            if isinstance(op, TileOp | OperationOp | CollectiveOp)
        )

    def verify_(self) -> None:
        self._verify_columns()
        self._verify_children()

    def _verify_columns(self) -> None:
        if not self.entries:
            raise VerifyException(f"'{self.name}' op moves no tensor")
        loops = sorted(self.permutation.data)
        rows = len(self.entries[0].factors)
        if self.is_temporal and rows != 1:
            raise VerifyException(
                f"'{self.name}' op is temporal and has {rows} rows of factors, "
                "time has only one"
            )
        for entry in self.entries:
            what = f"'{self.name}' op {entry.tensor} by {entry.tag}"
            if len(entry.factors) != rows:
                raise VerifyException(
                    f"{what} has {len(entry.factors)} rows of factors, "
                    f"the first entry has {rows}"
                )
            for row in entry.factors:
                if sorted(dim for dim, _ in row) != loops:
                    raise VerifyException(
                        f"{what} does not give one factor for each dimension of the "
                        f"permutation '{self.permutation.data}'"
                    )

    def _verify_children(self) -> None:
        kinds = [isinstance(op, BindingOp) for op in self.body.block.ops]
        nodes = kinds.count(False)
        if nodes == 0:
            raise VerifyException(f"'{self.name}' op has no child node")
        if len(self.children) != nodes:
            child = next(
                op
                for op in self.body.block.ops
                if op not in self.children and not isinstance(op, BindingOp)
            )
            raise VerifyException(
                f"'{self.name}' op holds '{child.name}', which is no mapping node"
            )
        bound = [True, False] * (nodes - 1) + [False]
        if any(kinds) and kinds != bound:
            raise VerifyException(
                f"'{self.name}' op bindings are misplaced; each of its {nodes} nodes "
                "but the last has one binding right before it"
            )


@irdl_op_definition
class MappingOp(IRDLOperation):
    """
    The mapping file: a tree whose root is a temporal data-movement node.

    ```mlir
    comet.mapping {
      comet.tile temporal ...
    }
    ```
    """

    name = "comet.mapping"

    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    assembly_format = "attr-dict-with-keyword $body"

    def __init__(self, body: Region):
        super().__init__(regions=[body])

    @property
    def root(self) -> TileOp:
        """The root of the tree."""
        root = self.body.block.first_op
        if not isinstance(root, TileOp):
            raise VerifyException(f"'{self.name}' op has no root")
        return root

    def verify_(self) -> None:
        ops: list[Operation] = list(self.body.block.ops)
        if len(ops) != 1 or not isinstance(ops[0], TileOp) or not ops[0].is_temporal:
            raise VerifyException(
                f"'{self.name}' op needs exactly one root, a temporal '{TileOp.name}'"
            )


Comet = Dialect(
    "comet",
    [
        ConstantsOp,
        ProblemOp,
        DeclareOp,
        MappingOp,
        TileOp,
        OperationOp,
        CollectiveOp,
        BindingOp,
    ],
    [
        SizesAttr,
        AccessesAttr,
        EntriesAttr,
        StepsAttr,
        ComputeAttr,
        TileKindAttr,
        BindingKindAttr,
        OperationKindAttr,
        CollectiveKindAttr,
        ReductionKindAttr,
    ],
)

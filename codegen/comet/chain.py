"""The plan of a chain of mappings: their order, and the tensors that each touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import yaml
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.comet.yaml import DUMPER
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.arch.fields import described
from comet.dialects.blocks import defined_in, yielded_by
from comet.dialects.chain import MappingOp, chained_mappings
from comet.dialects.comet import ProblemOp
from comet.dialects.compound import ConcatOp, RenameOp, SliceOp
from comet.dialects.compound.dims import bits_of, extents_of, names_of, unused
from comet.dialects.cost import Figures, estimate_of
from comet.dialects.errors import OpError
from comet.yaml_file import read_yaml

Entry: TypeAlias = dict[str, object]

PLAN = "plan.yaml"
"""The name of the file of a plan."""

HEADER = """\
# Run the mappings in this order, one after the other: each is the COMET files of its
# folder. It reads its tensors from the root memory and writes its results there, so
# nothing stays on chip from one mapping to the next, and times and energies add up.
# Views show tensors of the root memory, and move nothing.
"""


@dataclass(frozen=True)
class Chain:
    """A function as a chain of mappings, at least one."""

    func: FuncOp
    mappings: tuple[MappingOp, ...]

    @property
    def folders(self) -> dict[str, ModuleOp]:
        """The module of each mapping, by the folder of its files: 1, 2, and so on."""
        modules = (op.module() for op in self.mappings)
        return {str(number): module for number, module in enumerate(modules, 1)}


def chain_of(module: ModuleOp) -> Chain | None:
    """
    Return the chain of mappings in a module, None if it has none.

    Raises DiagnosticException if it has several.
    """
    functions = (op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks)
    found = [(func, tuple(chained_mappings(func))) for func in functions]
    chains = [Chain(func, mappings) for func, mappings in found if mappings]
    if len(chains) > 1:
        raise DiagnosticException(
            f"target comet: the module has {len(chains)} chains of mappings, and a "
            "plan is of one; keep one function per module"
        )
    return chains[0] if chains else None


def write_plan(chain: Chain) -> str:
    """
    Return the text of the plan.

    Raises DiagnosticException if a mapping is not lowered to COMET files.
    """
    names = tensor_names(chain.func)
    root = _root_memory(attached_system(chain.func))
    plan: Entry = {
        "chain": {
            "function": chain.func.sym_name.data,
            **_price(estimate_of(chain.func)),
            "resident": [],
        },
        "tensors": {name: _tensor(value, root) for value, name in names.items()},
        "steps": list(_steps(chain, names)),
        "results": [names[value] for value in yielded_by(chain.func.body.block)],
    }
    text = yaml.dump(
        plan, Dumper=DUMPER, sort_keys=False, default_flow_style=None, width=100
    )
    return HEADER + str(text)


def mapping_folders(text: str, name: str) -> tuple[str, ...]:
    """
    Return the folders of the mappings of a plan, in order; `text` is the file `name`.

    Raises FileFormatError if it is no plan.
    """
    file, folders = read_yaml(text, name), list[str]()
    steps = file.values.get("steps") if isinstance(file.values, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        match step:
            case {"folder": bool() | "" as folder}:
                raise file.error(
                    ("steps", index, "folder"),
                    f"'folder' is the name of a folder, not {described(folder)}; quote "
                    "it, or give the plan that comet-opt -t comet wrote",
                )
            case {"folder": int() | str() as folder}:  # a name may look like a number
                folders.append(str(folder))
            case {"view": str()}:
                pass
            case _:
                raise file.error(
                    ("steps", index),
                    "a step is a mapping with its 'folder', or a 'view'; give the "
                    "plan that comet-opt -t comet wrote",
                )
    if not folders:
        raise file.error(
            ("steps",),
            "'steps' of a plan name the folder of at least one mapping; give the plan "
            "that comet-opt -t comet wrote",
        )
    return tuple(folders)


def _root_memory(system: SystemOp) -> str:
    return system.levels[0].level_name


def tensor_names(func: FuncOp) -> dict[SSAValue, str]:
    """Return the names of all tensors of a chain, with numbers where two are equal."""
    names: dict[SSAValue, str] = {}
    for value in defined_in(func.body.block):
        names[value] = unused(value.name_hint or "t", set(names.values()), "_")
    return names


def _tensor(value: SSAValue, root: str) -> Entry:
    return {
        "dimensions": list(names_of(value)),
        "shape": list(extents_of(value).values()),
        "bits": bits_of(value),
        "memory": root,
    }


def _steps(chain: Chain, names: Mapping[SSAValue, str]) -> Iterator[Entry]:
    numbers = {op: number for number, op in enumerate(chain.mappings, 1)}
    for op in chain.func.body.block.ops:
        if isinstance(op, MappingOp):
            yield {"mapping": op.symbol, "folder": numbers[op], **_touched(op, names)}
        elif op.results:
            yield _view(op, names)


def _touched(op: MappingOp, names: Mapping[SSAValue, str]) -> Entry:
    """Return the entry of a mapping: its inputs and outputs by name, and its price."""
    problems = [child for child in op.module().ops if isinstance(child, ProblemOp)]
    if len(problems) != 1:
        raise OpError(
            op,
            f"target comet: the mapping @{op.symbol} has no files yet; run "
            "lower-to-comet in its module, as in nested{module=.. passes=..}",
        )
    (problem,) = problems
    reads = _pairs([name.data for name in problem.ins], op.ins, op, names)
    writes = _pairs([name.data for name in problem.outs], op.outs, op, names)
    return {"reads": reads, "writes": writes, **_price(estimate_of(op))}


def _pairs(
    files: Sequence[str],
    values: Sequence[SSAValue],
    op: MappingOp,
    names: Mapping[SSAValue, str],
) -> dict[str, str]:
    if len(files) != len(values):
        raise OpError(
            op,
            f"target comet: the files of @{op.symbol} have {len(files)} tensors where "
            f"the chain has {len(values)}; lower what outline-mappings made",
        )
    return {file: names[value] for file, value in zip(files, values, strict=True)}


def _view(op: Operation, names: Mapping[SSAValue, str]) -> Entry:
    """
    Return how a view shows tensors; elements are in row-major order.

    A rename shows the same elements with other dimensions, perhaps more or fewer.
    """
    entry: Entry = {"view": names[op.results[0]], "of": [names[v] for v in op.operands]}
    match op:
        case RenameOp():
            return entry | {"by": "rename"}
        case SliceOp():
            return entry | {"by": "slice", "first": op.offsets}
        case ConcatOp():
            return entry | {"by": "concat", "along": op.dim.data}
        case _:
            raise OpError(
                op,
                f"target comet: '{op.name}' is between the mappings of a chain, and a "
                "plan has views only; compute it in a mapping",
            )


def summary(chain: Chain) -> Iterator[str]:
    """Yield a line for each mapping: its price, what it reads and what it writes."""
    names = tensor_names(chain.func)
    for number, op in enumerate(chain.mappings, 1):
        reads, writes = (" ".join(names[v] for v in vs) for vs in (op.ins, op.outs))
        figures = estimate_of(op)
        price = "" if figures is None else f"{figures.latency:,.0f} {figures.unit}, "
        yield f"  {number}: {price}{reads} -> {writes}"


def _price(figures: Figures | None) -> Entry:
    if figures is None:
        return {}
    energy = {} if figures.energy is None else {"energy_pj": round(figures.energy, 3)}
    return {"model": str(figures.model), "cycles": figures.latency, **energy}

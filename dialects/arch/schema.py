"""The fields of a hardware file: their names, what they hold, which must be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from comet.dialects.arch.fields import Field, Fields, described, fits

Kind: TypeAlias = Literal[
    "count",
    "amount",
    "rate",
    "flag",
    "text",
    "rates",
    "mesh",
    "any",
    "share",
    "multiple",
    "costs",
]

ELEMENT_TYPES = ("f64", "f32", "f16", "bf16", "f8", "i8")
"""The element types for which rates can be given."""

FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "div", "reduce")
"""The vector operations that may cost more than an addition."""

EXPECTED: Mapping[Kind, str] = {
    "count": "a positive integer",
    "amount": "a number that is not negative",
    "rate": "a positive number",
    "flag": "true or false",
    "text": "text",
    "rates": f"a positive number for each of some of {', '.join(ELEMENT_TYPES)}",
    "mesh": "a list of two positive integers",
    "any": "a list or a map",
    "share": "a number above 0 and at most 1",
    "multiple": "a number of at least 1",
    "costs": f"a positive number for each of some of {', '.join(FUNCTIONS)}",
}
"""How each kind of field is described to the user."""


@dataclass(frozen=True)
class Rule:
    """What one field holds."""

    kind: Kind
    required: bool = False


Rules: TypeAlias = Mapping[str, Rule]

COUNT, AMOUNT, RATE, FLAG, TEXT, RATES, MESH, ANY, SHARE, MULTIPLE, COSTS = map(
    Rule, EXPECTED
)

COMPUTE: Rules = {
    "computeOpC": Rule("count", required=True),
    "computeLatency": Rule("count", required=True),
    "computewidth": ANY,
    "computeWidth": COUNT,
    "array_rows": COUNT,
    "array_cols": COUNT,
    "num_sa_rows": COUNT,
    "num_sa_cols": COUNT,
    "startupLatency": AMOUNT,
    "compute_energy": AMOUNT,
    "capacity": AMOUNT,
    "datawidth": COUNT,
}
"""
Attributes of a compute unit: operations and cycles; energies are pJ.

`computewidth` is in the samples of the COMET tool, which does not read it.
"""

MEMORY: Rules = {
    "width": COUNT,
    "depth": COUNT,
    "ports": COUNT,
    "bw": RATE,
    "parent_read_bw": RATE,
    "parent_write_bw": RATE,
    "child_read_bw": RATE,
    "child_write_bw": RATE,
    "link_read_bw": RATE,
    "link_write_bw": RATE,
    "parent_read_energy": AMOUNT,
    "parent_write_energy": AMOUNT,
    "child_read_energy": AMOUNT,
    "child_write_energy": AMOUNT,
    "parent_child_ports_shared": FLAG,
    "dma_contiguous": FLAG,
    "doublebuffered": FLAG,
    "reduction": FLAG,
}
"""Attributes of a memory: bytes, bytes per cycle, pJ per block of `width` bytes."""

LINK: Rules = {
    "bw": Rule("count", required=True),
    "connection_type": Rule("text", required=True),
    "meshX": COUNT,
    "meshY": COUNT,
    "mesh": MESH,
    "hop_latency": AMOUNT,
    "queuing_delay": AMOUNT,
    "channel_width": COUNT,
    "broadcast_support": FLAG,
    "reduction_support": FLAG,
    "link_transfers": FLAG,
}
"""Attributes of a node's link to its parent: bytes per cycle, cycles, bits (width)."""

ROOT: Rules = {name: Rule(rule.kind) for name, rule in LINK.items()}
"""The same of a node of no parent, which needs none of them."""

ROW: Rules = {"name": Rule("text", required=True), "class": TEXT, "attributes": ANY}
"""An entry of ComputeTiles or MemoryTypes."""

NODE: Rules = {
    "name": Rule("text", required=True),
    "type": Rule("text", required=True),
    "attributes": ANY,
    "is_compute": ANY,
    "connects": ANY,
    "drains": ANY,
    "fills": ANY,
}
"""A node of the Hierarchy."""

FILE: Rules = {
    "ComputeTiles": Rule("any", required=True),
    "MemoryTypes": Rule("any", required=True),
    "Hierarchy": Rule("any", required=True),
    "variables": ANY,
    "comet": ANY,
}
"""The top of a hardware file."""

COMET: Rules = {"mesh": ANY, "gpu": ANY}
"""The section that only comet reads."""

GPU: Rules = {
    "clock_ghz": Rule("rate", required=True),
    "multiprocessors": Rule("count", required=True),
    "tensor_tflops": Rule("rates", required=True),
    "vector_tflops": Rule("rates", required=True),
    "hbm_gb_per_s": Rule("rate", required=True),
    "l2_bytes": Rule("count", required=True),
    "l2_gb_per_s": Rule("rate", required=True),
    "link_gb_per_s": Rule("rate", required=True),
    "link_latency_us": Rule("amount", required=True),
    "launch_us": Rule("amount", required=True),
    "barrier_us": Rule("amount", required=True),
    "signal_us": Rule("amount", required=True),
    "links": COUNT,
    "remote_load_us": AMOUNT,
    "remote_caches": COUNT,
    "graph_launch_us": AMOUNT,
    "skew": AMOUNT,
    "flag_bytes": COUNT,
    "load_latency_us": RATE,
    "iteration_us": AMOUNT,
    "warps": COUNT,
    "warp_threads": COUNT,
    "shared_bytes_per_clock": COUNT,
    "load_bytes": COUNT,
    "copy_bytes": COUNT,
    "free_load_bytes": COUNT,
    "function_costs": COSTS,
    "tile_registers": COUNT,
    "tile_registers_f32": COUNT,
    "thread_registers": COUNT,
    "register_multiple": MULTIPLE,
    "register_share": SHARE,
    "shared_share": SHARE,
    "shared_operand_rows": COUNT,
    "exposed_share": SHARE,
}
"""
Figures of one GPU, in the units of data sheets; docs/tools.md says what they are.

`cost.gpu` has them in SI units.
"""

GPU_DEFAULTS: Fields = {
    "links": 1,  # assumed: a switch
    "skew": 0,  # assumed: all GPUs are equally fast
    "flag_bytes": 64,  # assumed: the least that memory moves
    "load_latency_us": 0.6,  # assumed: an order of magnitude
    "iteration_us": 0.05,  # assumed: an order of magnitude
    "warps": 64,  # of H100: docs.rs/oxicuda-launch, SmVersion::max_warps_per_sm
    "warp_threads": 32,  # of NVIDIA: docs.rs/oxicuda-launch, SmVersion::warp_size
    "shared_bytes_per_clock": 128,  # assumed: 32 banks of 4 bytes
    "load_bytes": 16,  # assumed: vector loads of at most 128 bits
    "copy_bytes": 4,  # cp.async takes 4, 8 or 16 bytes: docs.rs/crate/ptx-90-parser
    "free_load_bytes": 8,  # assumed, from what Triton compiles for sm_90
    "function_costs": {  # assumed: fewer lanes; a reduction also shuffles
        "exp": 8,
        "log": 8,
        "sqrt": 8,
        "rsqrt": 8,
        "tanh": 16,
        "erf": 16,
        "div": 8,
        "reduce": 2,
    },
    "tile_registers": 128,  # assumed, from what Triton compiles for sm_90
    "tile_registers_f32": 72,  # assumed, from what Triton compiles for sm_90
    "thread_registers": 32,  # assumed
    "register_multiple": 1.5,  # assumed
    "register_share": 0.55,  # assumed, from what Triton compiles for sm_90
    "shared_share": 0.75,  # assumed, from what Triton compiles for sm_90
    "shared_operand_rows": 64,  # assumed: wgmma has 64 rows
    "exposed_share": 0.1,  # assumed
}
"""
What files of GPUs mean that lack a field, with its source or the word assumed.

Others follow from the file: `remote_load_us` is the sum of `load_latency_us` and
`link_latency_us`, `remote_caches` are the multiprocessors, `graph_launch_us` is
`launch_us`.
"""


def mistakes(fields: Fields, rules: Rules) -> Iterator[tuple[str | None, str]]:
    """
    Yield the name of each field that breaks its rule or has none, with a sentence.

    The name is None where a field is missing.
    """
    for name in fields:
        if name not in rules:
            yield name, f"unknown field {described(name)}, {_nearest(name, rules)}"
    for name, rule in rules.items():
        if name not in fields:
            if rule.required:
                yield (
                    None,
                    f"the field '{name}' is missing; it is {EXPECTED[rule.kind]}",
                )
        elif not _holds(rule.kind, fields[name]):
            wanted, found = EXPECTED[rule.kind], described(fields[name])
            yield name, f"the field '{name}' is {wanted}, not {found}"


def _nearest(name: str, rules: Rules) -> str:
    """Return the known field that may be meant, or all that there are."""
    by_lower = {known.lower(): known for known in rules}
    if close := get_close_matches(name.lower(), by_lower, n=1):
        return f"did you mean '{by_lower[close[0]]}'?"
    return f"known are {', '.join(rules)}"


def mesh_shape(link: Fields) -> tuple[int, int]:
    """
    Return how the instances of a node are laid out (columns, rows).

    `link` is what the node's attributes say; `mesh` counts before `meshX` and `meshY`,
    as in the COMET tool.
    """
    match link.get("mesh"):
        case [int(columns), int(rows)]:
            return columns, rows
        case _:
            pass
    columns, rows = link.get("meshX"), link.get("meshY")
    return (
        columns if isinstance(columns, int) else 1,
        rows if isinstance(rows, int) else 1,
    )


def _number(value: Field) -> float | None:
    """Return `value` if it is a number that fits in 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if fits(value) else None


def _are_rates(value: Field, names: Sequence[str]) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(name in names for name in value)
        and all(_holds("rate", rate) for rate in value.values())
    )


def _holds(kind: Kind, value: Field) -> bool:
    number = _number(value)
    match kind:
        case "count":
            return isinstance(value, int) and number is not None and number > 0
        case "amount":
            return number is not None and number >= 0
        case "rate":
            return number is not None and number > 0
        case "flag":
            return isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "rates":
            return _are_rates(value, ELEMENT_TYPES)
        case "share":
            return number is not None and 0 < number <= 1
        case "multiple":
            return number is not None and number >= 1
        case "costs":
            return _are_rates(value, FUNCTIONS)
        case "mesh":
            return (
                isinstance(value, list)
                and len(value) == 2
                and all(_holds("count", extent) for extent in value)
            )
        case "any":
            return True

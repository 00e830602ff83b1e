"""The fields of a hardware file: their names, what they hold, which must be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from comet.dialects.arch_fields import Field, Fields

Kind: TypeAlias = Literal["count", "amount", "flag", "text", "rates", "any"]

EXPECTED: Mapping[Kind, str] = {
    "count": "a positive integer",
    "amount": "a number that is not negative",
    "flag": "true or false",
    "text": "text",
    "rates": "a number for each of some element types",
    "any": "a list or a map",
}
"""How each kind of field is described to the user."""

ELEMENT_TYPES = ("f64", "f32", "f16", "bf16", "f8", "i8")
"""The element types for which rates can be given."""


@dataclass(frozen=True)
class Rule:
    """What one field holds."""

    kind: Kind
    required: bool = False


Rules: TypeAlias = Mapping[str, Rule]

COUNT, AMOUNT, FLAG, TEXT, RATES, ANY = (Rule(kind) for kind in EXPECTED)

COMPUTE: Rules = {
    "computeOpC": Rule("count", required=True),
    "computeLatency": Rule("count", required=True),
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
"""Attributes of a compute unit: operations and cycles; energies are pJ."""

MEMORY: Rules = {
    "width": COUNT,
    "depth": COUNT,
    "ports": COUNT,
    "bw": AMOUNT,
    "parent_read_bw": AMOUNT,
    "parent_write_bw": AMOUNT,
    "child_read_bw": AMOUNT,
    "child_write_bw": AMOUNT,
    "link_read_bw": AMOUNT,
    "link_write_bw": AMOUNT,
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
    "hop_latency": AMOUNT,
    "queuing_delay": AMOUNT,
    "channel_width": COUNT,
    "broadcast_support": FLAG,
    "reduction_support": FLAG,
    "link_transfers": FLAG,
}
"""Attributes of a node's link to its parent: bytes per cycle, cycles, bits (width)."""

ROW: Rules = {"name": Rule("text", required=True), "class": TEXT, "attributes": ANY}
"""An entry of ComputeTiles or MemoryTypes."""

NODE: Rules = {
    "name": Rule("text", required=True),
    "type": Rule("text", required=True),
    "attributes": ANY,
    "is_compute": ANY,
    "mesh": ANY,
    "connects": ANY,
    "drains": ANY,
    "fills": ANY,
}
"""A node of the Hierarchy."""

FILE: Rules = {
    "ComputeTiles": Rule("any", required=True),
    "MemoryTypes": Rule("any", required=True),
    "Hierarchy": Rule("any", required=True),
    "comet": ANY,
}
"""The top of a hardware file."""

COMET: Rules = {"mesh": ANY, "gpu": ANY}
"""The section that only comet reads."""

GPU: Rules = {
    "clock_ghz": Rule("amount", required=True),
    "multiprocessors": Rule("count", required=True),
    "tensor_tflops": Rule("rates", required=True),
    "vector_tflops": Rule("rates", required=True),
    "hbm_gb_per_s": Rule("amount", required=True),
    "l2_bytes": Rule("count", required=True),
    "l2_gb_per_s": Rule("amount", required=True),
    "link_gb_per_s": Rule("amount", required=True),
    "link_latency_us": Rule("amount", required=True),
    "launch_us": Rule("amount", required=True),
    "barrier_us": Rule("amount", required=True),
    "signal_us": Rule("amount", required=True),
    "links": COUNT,
    "remote_load_us": AMOUNT,
    "remote_caches": COUNT,
    "graph_launch_us": AMOUNT,
    "skew": AMOUNT,
}
"""Rates of one GPU, in the units of data sheets; `GpuRates` has them in SI units."""


def mistakes(fields: Fields, rules: Rules) -> Iterator[tuple[str | None, str]]:
    """
    Yield the name of each field that breaks its rule, with a sentence.

    The name is None where a field is missing. Unknown fields break no rule.
    """
    for name, rule in rules.items():
        if name not in fields:
            if rule.required:
                yield (
                    None,
                    f"the field '{name}' is missing; it is {EXPECTED[rule.kind]}",
                )
        elif not _holds(rule.kind, fields[name]):
            wanted, found = EXPECTED[rule.kind], _shown(fields[name])
            yield name, f"the field '{name}' is {wanted}, not {found}"


def near_misses(fields: Fields, rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield each unknown field that looks like a misspelt known one, and that one."""
    by_lower = {name.lower(): name for name in rules}
    for name in fields:
        if name in rules:
            continue
        if close := get_close_matches(name.lower(), by_lower, n=1, cutoff=0.85):
            yield name, by_lower[close[0]]


def _shown(value: Field) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _is_amount(value: Field) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0


def _holds(kind: Kind, value: Field) -> bool:
    match kind:
        case "count":
            return _is_amount(value) and isinstance(value, int) and value > 0
        case "amount":
            return _is_amount(value)
        case "flag":
            return isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "rates":
            return isinstance(value, Mapping) and all(
                name in ELEMENT_TYPES and _is_amount(rate)
                for name, rate in value.items()
            )
        case "any":
            return True

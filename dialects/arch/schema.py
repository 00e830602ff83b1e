"""The fields of a hardware file: names, legal values, and which are required."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias, cast

from comet.dialects.arch.fields import Field, Fields, described, fits, number
from comet.dialects.arch.triton_version import (
    OLDEST_TRITON,
    read_version,
    version_text,
)

ELEMENT_TYPES = ("f64", "f32", "f16", "bf16", "f8", "i8")
"""The element types for which a file may have rates."""

FUNCTIONS = (
    *("exp", "exp2", "log", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "div"),
    *("random", "reduce"),
)
"""The vector operations that may cost more than an addition."""


@dataclass(frozen=True)
class Rule:
    """The legal values of one field."""

    expected: str
    """The description of legal values in errors."""
    holds: Callable[[Field], bool]
    required: bool = False
    within: Rules | None = None
    """The rules of the fields of a map."""


Rules: TypeAlias = Mapping[str, Rule]


def _number(holds: Callable[[float], bool]) -> Callable[[Field], bool]:
    """Return the check of a number that fits in 64 bits and for which `holds`."""

    def check(value: Field) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return fits(value) and holds(value)

    return check


def _positive_for(names: Sequence[str]) -> Rule:
    """Return the rule of a map from some of the names to positive numbers."""

    def check(value: Field) -> bool:
        return (
            isinstance(value, Mapping)
            and 0 < len(value)
            and all(n in names and RATE.holds(rate) for n, rate in value.items())
        )

    return Rule(f"a positive number for each of some of {', '.join(names)}", check)


AMOUNT = Rule("a number that is not negative", _number(lambda n: n >= 0))
RATE = Rule("a positive number", _number(lambda n: n > 0))
COUNT = Rule("a positive integer", lambda v: isinstance(v, int) and RATE.holds(v))
NATURAL = Rule(
    "an integer that is not negative", lambda v: isinstance(v, int) and AMOUNT.holds(v)
)
SWITCH = Rule("0 or 1", lambda v: NATURAL.holds(v) and v in (0, 1))
FRACTION = Rule("a number above 0 and at most 1", _number(lambda n: 0 < n <= 1))
MULTIPLE = Rule("a number of at least 1", _number(lambda n: n >= 1))
RATES, COSTS = _positive_for(ELEMENT_TYPES), _positive_for(FUNCTIONS)


def _counts(value: Field, number: int) -> bool:
    """Return whether a field is a list of `number` positive integers."""
    if not isinstance(value, list):
        return False
    return len(value) == number and all(map(COUNT.holds, value))


MESH = Rule("a list of two positive integers", lambda v: _counts(v, 2))
INSTRUCTIONS = Rule(
    "a list of lists of three positive integers: rows, columns, lanes of a row",
    lambda v: isinstance(v, list) and len(v) > 0 and all(_counts(e, 3) for e in v),
)
FUNCTION_NAMES = Rule(
    f"a list of some of {', '.join(FUNCTIONS)}",
    lambda v: isinstance(v, list) and all(name in FUNCTIONS for name in v),
)
FLAG = Rule("true or false", lambda v: isinstance(v, bool))
TEXT = Rule("text", lambda v: isinstance(v, str))
VERSION = Rule(
    f"a version of Triton in quotes, '{version_text(OLDEST_TRITON)}' or newer",
    lambda v: isinstance(v, str) and (read_version(v) or (0, 0)) >= OLDEST_TRITON,
)
ANY = Rule("a list or a map", lambda v: True)


def _required(rule: Rule) -> Rule:
    return replace(rule, required=True)


COMPUTE: Rules = {
    "computeOpC": _required(COUNT),
    "computeLatency": _required(COUNT),
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
    "bw": MULTIPLE,
    "parent_read_bw": MULTIPLE,
    "parent_write_bw": MULTIPLE,
    "child_read_bw": MULTIPLE,
    "child_write_bw": MULTIPLE,
    "link_read_bw": MULTIPLE,
    "link_write_bw": MULTIPLE,
    "parent_read_energy": AMOUNT,
    "parent_write_energy": AMOUNT,
    "child_read_energy": AMOUNT,
    "child_write_energy": AMOUNT,
    "parent_child_ports_shared": FLAG,
    "dma_contiguous": FLAG,
    "doublebuffered": FLAG,
    "reduction": FLAG,
}
"""
Attributes of a memory: bytes, bytes per cycle, pJ per block of `width` bytes.

Fractions of bandwidths are dropped, as the COMET tool does; below 1 nothing is left.
"""

LINK: Rules = {
    "bw": _required(COUNT),
    "connection_type": _required(TEXT),
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

ROOT: Rules = {name: replace(rule, required=False) for name, rule in LINK.items()}
"""The same for a node without a parent, which requires none of them."""

ROW: Rules = {"name": _required(TEXT), "class": TEXT, "attributes": ANY}
"""An entry of ComputeTiles or MemoryTypes."""

NODE: Rules = {
    "name": _required(TEXT),
    "type": _required(TEXT),
    "attributes": ANY,
    "is_compute": ANY,
    "connects": ANY,
    "drains": ANY,
    "fills": ANY,
}
"""A node of the Hierarchy."""

FILE: Rules = {
    "ComputeTiles": _required(ANY),
    "MemoryTypes": _required(ANY),
    "Hierarchy": _required(ANY),
    "variables": ANY,
    "comet": ANY,
}
"""The top of a hardware file."""

COMET: Rules = {"mesh": ANY, "gpu": ANY}
"""The section that only comet reads."""

MEASURED: Rules = {
    "tensor_tflops": RATES,
    "vector_tflops": RATES,
    "hbm_gb_per_s": RATE,
    "l2_gb_per_s": RATE,
    "link_gb_per_s": RATE,
    "link_latency_us": AMOUNT,
    "launch_us": AMOUNT,
    "barrier_us": AMOUNT,
    "signal_us": AMOUNT,
    "load_latency_us": RATE,
    "iteration_us": AMOUNT,
    "dependent_us": AMOUNT,
    "flag_latency_us": AMOUNT,
    "exchange_us": AMOUNT,
}
"""Measured figures of a GPU, in addition to those of its data sheet."""

SPECIALIZED: Rules = {
    "warps": _required(COUNT),
    "stages": _required(COUNT),
    "groups": _required(COUNT),
    "rows": _required(COUNT),
    "registers": _required(COUNT),
    "shared_bytes": _required(NATURAL),
}
"""Kernels in which producer warps load, and groups of warps compute."""

GPU: Rules = {
    "clock_ghz": _required(RATE),
    "multiprocessors": _required(COUNT),
    "tensor_tflops": _required(RATES),
    "vector_tflops": _required(RATES),
    "hbm_gb_per_s": _required(RATE),
    "l2_bytes": _required(COUNT),
    "l2_gb_per_s": _required(RATE),
    "link_gb_per_s": _required(RATE),
    "link_latency_us": _required(AMOUNT),
    "launch_us": _required(AMOUNT),
    "barrier_us": _required(AMOUNT),
    "signal_us": _required(AMOUNT),
    "links": COUNT,
    "remote_load_us": AMOUNT,
    "remote_caches": COUNT,
    "graph_launch_us": AMOUNT,
    "skew": AMOUNT,
    "flag_bytes": COUNT,
    "load_latency_us": RATE,
    "iteration_us": AMOUNT,
    "dependent_us": AMOUNT,
    "flag_latency_us": AMOUNT,
    "exchange_us": AMOUNT,
    "warps": COUNT,
    "warp_threads": COUNT,
    "vector_warps": RATE,
    "reserved_shared_bytes": NATURAL,
    "shared_bytes_per_clock": COUNT,
    "load_bytes": COUNT,
    "copy_bytes": COUNT,
    "free_load_bytes": COUNT,
    "descriptor_bytes": COUNT,
    "stages_converted": SWITCH,
    "whole_tiles": SWITCH,
    "rounded_fraction": FRACTION,
    "stores_converted": SWITCH,
    "function_costs": COSTS,
    "special_units": FUNCTION_NAMES,
    "specialized": Rule(
        "a map of the numbers of specialized warps",
        lambda v: isinstance(v, Mapping),
        within=SPECIALIZED,
    ),
    "thread_registers": COUNT,
    "vector_registers": COUNT,
    "most_registers": COUNT,
    "spare_registers": COUNT,
    "accumulation_registers": COUNT,
    "epilogue_subtiles": COUNT,
    "launch_registers": COUNT,
    "most_cluster_blocks": COUNT,
    "cluster_exchange_us": AMOUNT,
    "triton": VERSION,
    "nested_address_registers": NATURAL,
    "summed_address_registers": NATURAL,
    "masked_address_registers": NATURAL,
    "stored_address_registers": NATURAL,
    "operand_fraction": FRACTION,
    "operand_terms": COUNT,
    "load_fraction": FRACTION,
    "copies_pass_registers": SWITCH,
    "passed_fraction": FRACTION,
    "f32_multiple": MULTIPLE,
    "shared_fraction": FRACTION,
    "shared_operand_rows": NATURAL,
    "matrix_instructions": INSTRUCTIONS,
    "warp_instructions": MESH,
    "warps_along_rows": SWITCH,
    "second_loop_registers": COUNT,
    "outer_loop_registers": COUNT,
    "unrolled_loop_registers": COUNT,
    "least_group_elements": COUNT,
    "most_group_elements": COUNT,
    "least_copy_elements": COUNT,
    "most_copy_elements": COUNT,
    "copy_programs": COUNT,
    "flag_rows": COUNT,
    "exposed_fraction": FRACTION,
    "mean_length": FRACTION,
    "sharing_ranks": COUNT,
    "measured": Rule(
        "a map of measured figures", lambda v: isinstance(v, Mapping), within=MEASURED
    ),
}
"""
Figures of one GPU, in the units of data sheets; docs/hardware.md describes them.

`cost.gpu` has them in SI units.
"""

GPU_DEFAULTS: Fields = {
    "links": 1,  # assumed: a switch
    "skew": 0,  # assumed: all GPUs are equally fast
    "flag_bytes": 64,  # assumed: the least that memory moves
    "load_latency_us": 0.6,  # assumed: an order of magnitude
    "iteration_us": 0.05,  # assumed: an order of magnitude
    "dependent_us": 0,  # assumed: other programs hide it
    "flag_latency_us": 0.6,  # assumed: as long as a load
    "exchange_us": 1.5,  # assumed: a store, a flag and two loads, all through L2
    "cluster_exchange_us": 0.25,  # of an H200: benchmarks/figures/h200.md
    "warps": 64,  # of H100: docs.rs/oxicuda-launch, SmVersion::max_warps_per_sm
    "warp_threads": 32,  # of NVIDIA: docs.rs/oxicuda-launch, SmVersion::warp_size
    "vector_warps": 4,  # assumed: one for each scheduler
    "reserved_shared_bytes": 0,  # assumed
    "shared_bytes_per_clock": 128,  # assumed: 32 banks of 4 bytes
    "load_bytes": 16,  # assumed: vector loads of at most 128 bits
    "copy_bytes": 4,  # cp.async takes 4, 8 or 16 bytes: docs.rs/crate/ptx-90-parser
    "free_load_bytes": 8,  # assumed, from what Triton compiles for sm_90
    # exp: of an H200; sin and cos: the instructions of arguments below 10^5 in PTX of
    # Triton 3.9 for sm_90; random: the instructions of tl.rand in SASS of the same, 20
    # logical ones, 30 products of integers and 6 others; others assumed; a reduction
    # also shuffles
    "function_costs": {
        "exp": 8,
        "exp2": 4,
        "log": 8,
        "sqrt": 8,
        "rsqrt": 8,
        "tanh": 16,
        "erf": 16,
        "sin": 32,
        "cos": 32,
        "div": 8,
        "random": 56,
        "reduce": 2,
    },
    "thread_registers": 28,  # fitted to kernels compiled for sm_90
    "most_registers": 255,  # the most in any kernel compiled for sm_90
    "spare_registers": 12,  # fitted to kernels compiled for sm_90
    "operand_fraction": 0.5,  # fitted to kernels compiled for sm_90
    "operand_terms": 32,  # of two 16-bit instructions: fitted, tests/data/registers.csv
    "load_fraction": 0.65,  # fitted to kernels compiled for sm_90
    "f32_multiple": 3,  # assumed, from what Triton compiles for sm_90
    "shared_fraction": 0.955,  # fitted to kernels compiled for sm_90
    "shared_operand_rows": 64,  # assumed: wgmma has 64 rows
    "matrix_instructions": [[16, 8, 4]],  # m16n8k16: docs.rs/crate/ptx-90-parser
    "warp_instructions": [1, 2],  # Triton, AccelerateMatmul.cpp, warpsPerTileV2
    "copies_pass_registers": 0,  # cp.async: docs.rs/crate/ptx-90-parser
    "stores_converted": 1,  # as Triton 3.6 to 3.9 compile for sm_90
    "second_loop_registers": 16,  # 14 in a kernel for sm_90: figures/kernels.md
    "outer_loop_registers": 16,  # median of 55 compiled kernels: figures/kernels.md
    "least_group_elements": 64,  # assumed
    "most_group_elements": 256,  # assumed: tiles that registers hold
    "least_copy_elements": 1024,  # assumed: 8 of 128 threads
    "most_copy_elements": 8192,  # assumed: 64 of 128 threads
    "copy_programs": 128,  # assumed: about one for each multiprocessor
    "flag_rows": 64,  # assumed: waits for fewer rows start earlier, and poll more flags
    "exposed_fraction": 0.1,  # assumed
    "mean_length": 1,  # of the inputs, not of the machine: all are the longest
    "triton": version_text(OLDEST_TRITON),  # of the software, not of the machine
    "sharing_ranks": 1,  # of the launch, not of the machine: each rank has its GPU
}
"""
Defaults of the fields of a GPU, each with its source or the word assumed.

Other defaults follow from the file: `remote_load_us` is the sum of `load_latency_us`
and `link_latency_us`, `remote_caches` is `multiprocessors`, and `graph_launch_us` is
`launch_us`.
"""


_EXPONENT = re.compile(r"[+-]?\d+(\.\d*)?e[+-]?\d+", re.IGNORECASE)
"""A number that YAML 1.1 takes for a text if it lacks the point or the sign."""

RENAMED = {
    "exposed_share": "exposed_fraction",
    "shared_share": "shared_fraction",
}
"""The new name of each old field, for errors; an old name is no alias."""


def mistakes(fields: Fields, rules: Rules) -> Iterator[tuple[str | None, str]]:
    """
    Yield the name and a sentence for each field that is illegal, unknown or missing.

    The name of a missing field is None.
    """
    for name in fields:
        if name not in rules:
            yield name, f"unknown field {described(name)}, {_nearest(name, rules)}"
    missing = [n for n, r in rules.items() if r.required and n not in fields]
    if missing:
        yield None, _missing(missing, rules)
    for name, rule in rules.items():
        if name not in fields:
            continue
        if not rule.holds(fields[name]):
            found = f"{described(fields[name])}{_text_note(fields[name])}"
            yield name, f"the field '{name}' is {rule.expected}, not {found}"
        elif rule.within is not None:
            inner = mistakes(cast(Fields, fields[name]), rule.within)
            yield from ((name, f"in '{name}': {sentence}") for _, sentence in inner)


def _missing(names: Sequence[str], rules: Rules) -> str:
    """Say which fields are missing, and what is expected of each."""
    if len(names) == 1:
        return f"the field '{names[0]}' is missing; it is {rules[names[0]].expected}"
    expected = ", ".join(f"'{name}', {rules[name].expected}" for name in names)
    return f"{len(names)} fields are missing: {expected}"


def _text_note(value: Field) -> str:
    """Return what to say of a text that looks like a number, as 1e9 does."""
    if not isinstance(value, str) or not _EXPONENT.fullmatch(value):
        return ""
    return ", which YAML reads as text; write it as 1.0e+9, or without an exponent"


def _nearest(name: str, rules: Rules) -> str:
    """Return the known field that may be meant, or all known fields."""
    if name in RENAMED:
        return f"it is called '{RENAMED[name]}' now"
    by_lower = {known.lower(): known for known in rules}
    if close := get_close_matches(name.lower(), by_lower, n=1):
        return f"did you mean '{by_lower[close[0]]}'?"
    return f"known are {', '.join(rules)}"


MESH_FIELDS = ("mesh", "meshX", "meshY")
"""The attributes of a node with the shape of the mesh of its instances."""


def mesh_shape(link: Fields) -> tuple[int, int]:
    """
    Return the mesh of the instances of a node: columns, rows.

    `link` is the node's attributes; `mesh` takes precedence over `meshX` and `meshY`,
    as in the COMET tool.
    """
    match link.get("mesh"):
        case [int(columns), int(rows)]:
            return columns, rows
        case _:
            pass
    return int(number(link, "meshX", 1)), int(number(link, "meshY", 1))

"""What chosen rows cost: bytes of rows and of ids, and how wide loads are."""

from dataclasses import dataclass

import pytest
from gather_programs import gathered, tensor
from semantics import parse_module, run_passes
from triton_modules import hardware

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.from_ir.memory import ids_of, vector_width
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import kernel_work
from comet.cost.gpu.work import KernelWork
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes

TABLE, IDS = {"V": 4096, "D": 64}, {"T": 1000}
ROWS = gathered(TABLE, "V", IDS)
CHOSEN = {
    "V": f'%r = compound.gather %x, %i along "V" : {tensor(TABLE)}, '
    f"{tensor(IDS, 'i32')} -> {tensor(ROWS)}",
    "D": f'%r = compound.gather %x, %i along "D" : {tensor(TABLE)}, '
    f"{tensor(IDS, 'i32')} -> {tensor(gathered(TABLE, 'D', IDS))}",
}


@dataclass(frozen=True)
class Priced:
    """A kernel as it is priced."""

    node: SpatialOp
    summary: KernelSummary
    work: KernelWork


def priced(lines: str, result: dict[str, int], ids: str = "i32") -> Priced:
    """Return the kernel that maps %r, which `lines` make of %x by ids %i."""
    type_ = tensor(result)
    text = f"""
    func.func @main(%x: {tensor(TABLE)}, %i: {tensor(IDS, ids)}) -> {type_} {{
      {lines}
      %e = compound.map exp %r : {type_} -> {type_}
      func.return %e : {type_}
    }}"""
    module = run_passes(parse_module(text), f"{hardware('h200x1.yaml')},fuse,tile")
    system, (func,) = attached_system(module), compute_functions(module)
    (node,), gpu = grid_nodes(func), device_of(system)
    summary = summarize(node, gpu_levels(system), gpu)
    work = kernel_work(summary, tile_blocks(node), LaunchNumbers(4, 3), gpu)
    return Priced(node, summary, work)


def test_rows_and_ids_come_from_memory_once_and_the_table_does_not():
    found = priced(CHOSEN["V"], ROWS)
    rows = 1000 * 64 * 4
    assert float(found.work.moved.device) == rows + 1000 * 4 + rows
    assert [term.dims for term in found.summary.moves.ids] == [("T",)]


def test_ids_of_64_bits_have_8_bytes():
    found = priced(CHOSEN["V"].replace("i32", "i64"), ROWS, "i64")
    rows = 1000 * 64 * 4
    assert float(found.work.moved.device) == rows + 1000 * 8 + rows


def test_a_program_waits_for_ids_before_it_loads_rows():
    found = priced(CHOSEN["V"], ROWS)
    whole = tensor(TABLE)
    plain = priced(f"%r = compound.map tanh %x : {whole} -> {whole}", TABLE)
    assert len(found.summary.sync.waits) == len(plain.summary.sync.waits) + 1
    assert plain.summary.moves.ids == ()


@pytest.mark.parametrize(("along", "width"), [("V", 16), ("D", 4)])
def test_neighbours_are_loaded_together_only_inside_of_rows(along: str, width: int):
    found = priced(CHOSEN[along], gathered(TABLE, along, IDS))
    assert [vector_width(tile, 16) for tile in found.node.tiles] == [width]


@pytest.mark.parametrize(("positions", "width"), [(32, 16), (6, 8)])
def test_positions_in_order_are_loaded_together(positions: int, width: int):
    """A rank's shard of what all have begins at a multiple of its extent."""
    row, chosen = tensor({"T": positions}, "i32"), {**TABLE, "T": positions}
    del chosen["D"]
    lines = f"""
      %p = compound.index : {row}
      %r = compound.gather %x, %p along "D" :
        {tensor(TABLE)}, {row} -> {tensor(chosen)}"""
    found = priced(lines, chosen)
    assert [vector_width(tile, 16) for tile in found.node.tiles] == [width]


@pytest.mark.parametrize(
    ("view", "result", "choosing"),
    [
        ('split "T"', {"A": 10, "B": 100, "D": 64}, ("A", "B")),
        ('split "D"', {"T": 1000, "E": 2, "F": 32}, ("T",)),
        ('merge "T"', {"S": 64000}, ("S",)),
        ("", {"M": 1000, "N": 64}, ("M",)),
    ],
)
def test_views_know_which_dimensions_choose(
    view: str, result: dict[str, int], choosing: tuple[str, ...]
):
    rows = CHOSEN["V"].replace("%r =", "%c =")
    seen = f"%r = compound.rename %c {view} : {tensor(ROWS)} -> {tensor(result)}"
    found = priced(f"{rows}\n{seen}", result)
    assert [ids_of(value)[0] for value in found.node.ins] == [choosing]

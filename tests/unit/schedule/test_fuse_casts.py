"""Casts on accelerators: what reads a value casts it, or what computes it."""

import numpy as np
import pytest
from comet_rules import check
from covering import one_of
from paths import ROOT
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import ops_of

from comet.codegen.comet import write_files
from comet.dialects.compound import CastOp
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.schedule import YieldOp

ATTACH = f'attach-hardware{{path="{ROOT}/samples/hardware/edge.yaml"}}'
TYPES = ("f16", "bf16", "f32", "i32")
DIMS = ("M", "K", "A", "B", "C", "D", "E", "F")


def program(seed: int, rank: int) -> str:
    """Return a product and a chain of maps, with casts at random."""
    rng = np.random.default_rng(seed)
    dims = DIMS[:rank] if rank > 1 else ("M",)
    sizes = {dim: int(rng.choice([4, 6, 8] if rank < 4 else [2, 4])) for dim in dims}

    def type_of(element: str) -> str:
        shape = "x".join(map(str, sizes.values()))
        return f"tensor<{shape}x{element}, #compound.dims<{', '.join(dims)}>>"

    arguments = [(f"x{i}", str(rng.choice(TYPES))) for i in range(3)]
    values, lines = dict(arguments), list[str]()

    def cast(name: str, element: str) -> str:
        if values[name] == element:
            return name
        made = f"t{len(lines)}"
        before, after = type_of(values[name]), type_of(element)
        lines.append(f"%{made} = compound.cast %{name} : {before} -> {after}")
        values[made] = element
        return made

    for i in range(5):
        element = str(rng.choice(TYPES[:3]))
        left, right = (cast(str(rng.choice(list(values))), element) for _ in range(2))
        kind = rng.choice(["add", "max", "sub"])
        types = ", ".join([type_of(element)] * 2)
        lines.append(
            f"%y{i} = compound.map {kind} %{left}, %{right} : {types} -> "
            f"{type_of(element)}"
        )
        values[f"y{i}"] = element
    result = cast("y4", str(rng.choice(TYPES[:3])))
    taken = ", ".join(f"%{name}: {type_of(element)}" for name, element in arguments)
    body, end = "\n  ".join(lines), type_of(values[result])
    return (
        f"func.func @main({taken}) -> {end} {{\n  {body}\n"
        f"  func.return %{result} : {end}\n}}"
    )


@one_of(4)
@pytest.mark.parametrize("rank", [1, 2, 4, 8])
@pytest.mark.parametrize("strategy", ["none", "full"])
def test_casts_keep_their_meaning(strategy: str, rank: int):
    for seed in range(4):
        before = parse_module(program(seed, rank))
        tree = run_passes(before, f"{ATTACH},fuse{{strategy={strategy}}}")
        assert_same_meaning(before, tree, "main")
        for op in ops_of(tree, CastOp):
            users = [use.operation for use in op.result.uses]
            assert users
            assert isinstance(op.input.owner, ComputeOp | CastOp) or not any(
                isinstance(user, YieldOp) for user in users
            )


@one_of(2)
@pytest.mark.parametrize("seed", range(3))
def test_files_break_no_rule(seed: int):
    options = "strategy=full stream=false pad=none dim=M"
    passes = f"{ATTACH},comet-accelerator{{{options}}}"
    assert check(write_files(run_passes(parse_module(program(seed, 2)), passes))) == []


def test_what_is_read_again_costs_as_much_as_without_casts():
    """The bytes that move are those of the types in memory, not of the casts."""
    shape = "64x64x{}, #compound.dims<M, N>"
    narrow, wide = (f"tensor<{shape.format(e)}>" for e in ("f16", "f32"))
    casts = parse_module(f"""func.func @main(%x: {narrow}) -> {narrow} {{
      %w = compound.cast %x : {narrow} -> {wide}
      %e = compound.map exp %w : {wide} -> {wide}
      %n = compound.cast %e : {wide} -> {narrow}
      func.return %n : {narrow}
    }}""")
    plain = parse_module(f"""func.func @main(%x: {narrow}) -> {narrow} {{
      %e = compound.map exp %x : {narrow} -> {narrow}
      func.return %e : {narrow}
    }}""")
    passes = f"{ATTACH},comet-accelerator{{stream=false pad=none}}"
    files = [write_files(run_passes(module, passes)) for module in (casts, plain)]
    assert files[0]["mapping.yaml"] == files[1]["mapping.yaml"]

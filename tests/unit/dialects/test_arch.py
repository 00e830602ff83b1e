"""The arch dialect: hardware files to ops and back, and what passes ask of them."""

from pathlib import Path
from typing import cast

import plain_yaml
import pytest
from paths import HARDWARE
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from comet.cost.estimate import HardwareError
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import (
    Arch,
    ArchError,
    GpuOp,
    MemoryOp,
    SystemOp,
    attached_system,
    find_system,
)
from comet.dialects.arch.fields import (
    Field,
    Fields,
    attribute_of,
    dictionary_of,
    field_of,
    fields_of,
)
from comet.dialects.arch.schema import GPU, GPU_DEFAULTS
from comet.dialects.arch.yaml import fields_of_system, system_of_fields

FILES = sorted(HARDWARE.glob("*.yaml"))


def load(name: str) -> Fields:
    return cast(Fields, plain_yaml.load((HARDWARE / f"{name}.yaml").read_text()))


def system(name: str) -> SystemOp:
    return system_of_fields(name, load(name))


def reparsed(module: ModuleOp) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Arch)
    return Parser(context, str(module)).parse_module()


def test_a_machine_without_levels_has_no_price():
    with pytest.raises(HardwareError, match="@bare has no level"):
        hardware_of(SystemOp("bare"))


def test_hardware_is_read_once_for_all_clones_and_again_when_it_changes():
    module = ModuleOp([system("edge")])
    known = hardware_of(attached_system(module))
    other = attached_system(module.clone())
    assert hardware_of(other) is known
    (row,) = (
        op for op in other.walk() if isinstance(op, MemoryOp) and "bw" in op.fields.data
    )
    row.fields = dictionary_of({**fields_of(row.fields), "bw": 7})
    assert hardware_of(other).levels[0].memory.parent_read_bandwidth == 7
    assert hardware_of(attached_system(module)) is known


def test_there_are_hardware_files():
    assert {f.stem for f in FILES} >= {"edge", "cloud", "h200x1", "h200x8", "mi300x8"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_hardware_file_prints_back_whole(path: Path):
    document = load(path.stem)
    module = ModuleOp([system_of_fields(path.stem, document)])
    again = attached_system(reparsed(module))
    assert fields_of_system(again) == document
    # Equal dictionaries may differ in order; the hierarchy must not.
    assert str(fields_of_system(again)["Hierarchy"]) == str(
        fields_of_system(attached_system(module))["Hierarchy"]
    )


def test_what_comet_does_not_read_is_kept_and_children_keep_their_order():
    link = {"bw": 1, "connection_type": "MeshNetwork", "link_transfers": True}
    leaf = {"type": "S", "attributes": link}
    meshed = {**link, "mesh": [2, 3], "meshX": 7}
    document: Fields = {
        "ComputeTiles": [],
        "MemoryTypes": [
            {"name": "S", "class": "SRAM", "attributes": {"reduction": True}}
        ],
        "Hierarchy": [
            {
                "name": "A[0..7]",
                "type": "S",
                "drains": [{"name": "B", **leaf}, {"name": "C", **leaf}],
                "fills": [{"name": "D", "type": "S", "attributes": meshed}],
            }
        ],
        "variables": {"q": [-1, None, 1.5]},
    }
    found = system_of_fields("odd", document)
    assert fields_of_system(found) == document
    assert [level.level_name for level in found.levels] == ["A", "B", "C", "D"]
    assert found.level("D").mesh_shape == (2, 3)


def test_levels_of_the_edge_accelerator():
    edge = system("edge")
    ob = edge.level("OB")
    assert ob.capacity == 4096 * 32
    assert edge.level("DRAM").capacity is None
    assert (ob.instances, ob.total_instances) == (4, 16)
    assert ob.parent_level is edge.level("GB")
    assert [unit.level_name for unit in ob.units] == ["GEMMEngine", "SE"]
    assert ob.units[1].compute.kind.data == "VSIMD"
    assert ob.link_field("bw") == 64
    assert ob.link_field("nothing") is None


def test_axes_of_the_edge_accelerator():
    edge = system("edge")
    assert edge.axes == {"cx": 2, "cy": 2, "kx": 2, "ky": 2}
    assert edge.axis_levels == {"cx": "GB", "cy": "GB", "kx": "OB", "ky": "OB"}
    assert edge.axes_of("GB") == ("cx", "cy")
    assert edge.axes_of("IB") == ("kx", "ky")
    assert edge.axes_of("DRAM") == ()


def test_links_and_routes():
    edge = system("edge")
    assert edge.route("OB", "IB") == ("OB", "GB", "IB")
    assert edge.route("DRAM", "OB") == ("DRAM", "GB", "OB")
    assert edge.route("OB", "DRAM") == ("OB", "GB", "DRAM")


def test_levels_of_a_gpu_have_capacities_and_instances():
    h200 = system("h200x8")
    assert h200.level("HBM").capacity == 141 * 10**9
    assert h200.level("SMEM").total_instances == 8 * 132
    assert system("edge").gpu is None


def gpu(**fields: Field) -> GpuOp:
    """Return the figures of a GPU without those that files may lack, and these."""
    required = {name for name, rule in GPU.items() if rule.required}
    figures = cast(Fields, cast(Fields, load("h200x1")["comet"])["gpu"])
    return GpuOp({k: v for k, v in figures.items() if k in required} | fields)


def test_a_figure_that_a_file_lacks_is_the_default():
    assert gpu().figures["operand_fraction"] == 0.5
    assert gpu(operand_fraction=0.6).figures["operand_fraction"] == 0.6
    gpu(stages_converted=0, warps_along_rows=0).verify_()


def test_every_figure_is_required_or_has_a_default_or_follows_from_the_file():
    derived = {"remote_load_us", "remote_caches", "graph_launch_us"}
    derived |= {"descriptor_bytes", "stages_converted", "warps_along_rows", "measured"}
    derived |= {"whole_tiles", "rounded_fraction"}
    derived |= {"masked_address_registers", "stored_address_registers"}
    derived |= {"passed_fraction", "special_units", "specialized", "launch_registers"}
    derived |= {"nested_address_registers", "summed_address_registers"}
    derived |= {"vector_registers", "epilogue_subtiles", "most_cluster_blocks"}
    derived |= {"accumulation_registers", "unrolled_loop_registers"}
    optional = {name for name, rule in GPU.items() if not rule.required}
    assert optional == {*GPU_DEFAULTS, *derived}
    gpu(**GPU_DEFAULTS).verify_()


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("operand_fraction", 0, "above 0 and at most 1"),
        ("shared_fraction", 1.5, "above 0 and at most 1"),
        ("exposed_fraction", "much", "above 0 and at most 1"),
        ("f32_multiple", 0.5, "at least 1"),
        ("warps", 0, "a positive integer"),
        ("load_latency_us", 0, "a positive number"),
        ("function_costs", {"exp": 0}, "some of exp, exp2,"),
        ("function_costs", {"tan": 8}, "some of exp, exp2,"),
        ("function_costs", {}, "some of exp, exp2,"),
        ("special_units", ["tan"], "a list of some of exp, exp2,"),
        ("special_units", 1, "a list of some of exp, exp2,"),
        ("specialized", 4, "a map of"),
        ("most_cluster_blocks", 0, "a positive integer"),
        ("stages_converted", 2, "0 or 1"),
        ("cluster_exchange_us", -1, "not negative"),
        ("triton", 3.8, "a version of Triton in quotes"),
        ("triton", "3", "a version of Triton in quotes"),
        ("triton", "3.5", "a version of Triton in quotes, '3.6' or newer"),
    ],
)
def test_figures_out_of_range_are_rejected(field: str, value: Field, wanted: str):
    with pytest.raises(VerifyException, match=f"'{field}' is .*{wanted}"):
        gpu(**{field: value}).verify_()


def test_an_old_field_gives_its_new_name():
    message = "'shared_share', it is called 'shared_fraction' now"
    with pytest.raises(VerifyException, match=message):
        gpu(shared_share=0.5).verify_()


def test_a_missing_level_names_those_there_are():
    with pytest.raises(ArchError, match=r"no level L2; it has DRAM, GB, IB, WB, OB"):
        system("edge").level("L2")


def test_hardware_is_found_from_anywhere_in_the_module():
    module = ModuleOp([system("edge")])
    found = attached_system(module)
    assert attached_system(found.level("OB")) is found
    assert find_system(ModuleOp([])) is None
    with pytest.raises(ArchError, match="attach-hardware"):
        attached_system(ModuleOp([]))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, float("inf"), float("nan")])
def test_numbers_that_do_not_fit_are_rejected(value: float):
    with pytest.raises(ValueError, match=r"does not fit|not a finite"):
        attribute_of(value)


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -5, 2**62, 1.0, 1e-9, 1e300, "", "a b", [], {}]
)
def test_every_plain_value_has_an_attribute(value: bool | float | str | None):
    found = field_of(attribute_of(value))
    assert found == value
    assert type(found) is type(value)


def test_a_clone_is_equal_and_verifies() -> None:
    module = ModuleOp([system("edge")])
    clone = module.clone()
    clone.verify()
    assert clone.is_structurally_equivalent(module)

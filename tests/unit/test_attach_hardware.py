"""attach-hardware: what it adds, and each way in which a hardware file can be wrong."""

from pathlib import Path

import pytest
from paths import HARDWARE
from programs import graph_text
from tool_run import comet_opt
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from comet.cost.from_ir.gpus import device_of, machine_of
from comet.dialects.arch import attached_system
from comet.dialects.collective import MeshOp
from comet.passes.attach_hardware import AttachHardwarePass
from comet.yaml_file import FileFormatError

EDGE = (HARDWARE / "edge.yaml").read_text()
GPU = (HARDWARE / "h200x1.yaml").read_text()


def attach(path: Path, module: ModuleOp | None = None) -> ModuleOp:
    module = ModuleOp([]) if module is None else module
    AttachHardwarePass(str(path)).apply(Context(), module)
    module.verify()
    return module


@pytest.mark.parametrize("path", sorted(HARDWARE.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_sample_attaches_with_its_mesh(path: Path):
    module = attach(path)
    system = attached_system(module)
    mesh = next(op for op in module.ops if isinstance(op, MeshOp))
    assert system.system_name == mesh.sym_name.data == path.stem
    assert mesh.axis_extents == system.axes
    assert mesh.axis_levels == system.axis_levels


def test_axes_that_the_file_does_not_name_are_called_after_their_levels(
    tmp_path: Path,
):
    file = tmp_path / "plain.yaml"
    file.write_text(EDGE[: EDGE.index("# Read by comet only")])
    system = attached_system(attach(file))
    assert system.axes == {"GB_x": 2, "GB_y": 2, "OB_x": 2, "OB_y": 2}
    assert system.axis_levels["OB_x"] == "OB"
    assert system.axes_of("IB") == ("OB_x", "OB_y")


def test_hardware_of_one_instance_has_axes_of_one(tmp_path: Path):
    file = tmp_path / "plain.yaml"
    text = EDGE[: EDGE.index("# Read by comet only")].replace("[0..3]", "")
    file.write_text(text.replace("meshX: 2, meshY: 2", "mesh: [1, 1]"))
    assert attached_system(attach(file)).axes == dict.fromkeys(
        ("GB_x", "GB_y", "OB_x", "OB_y"), 1
    )


WRONG = {
    "a measured field that there is not": (
        GPU,
        "hbm_gb_per_s: 4330",
        "hbm_gb: 4330",
        r"in 'measured': unknown field 'hbm_gb', did you mean 'hbm_gb_per_s'",
    ),
    "a measured rate that is none": (
        GPU,
        "hbm_gb_per_s: 4330",
        "hbm_gb_per_s: 0",
        r"in 'measured': the field 'hbm_gb_per_s' is a positive number, not 0",
    ),
    "malformed": (EDGE, "bw: 64,", "bw: [,", r":33: malformed YAML: did not find"),
    "twice": (
        EDGE,
        "ports: 1,",
        "ports: 1, ports: 2,",
        r":20: .*'ports' is given twice",
    ),
    "type": (
        EDGE,
        "bw: 64,",
        "bw: fast,",
        r":33: .*number of at least 1, not 'fast'",
    ),
    "exponent": (EDGE, "bw: 64,", "bw: 1e2,", r"not '1e2', which YAML reads as text"),
    "flag": (EDGE, "reduction: true", "reduction: 7", r":32: .*true or false, not 7"),
    "near miss": (EDGE, "computeWidth", "computeWide", r":9: .*mean 'computeWidth'\?"),
    "missing": (EDGE, "computeLatency: 1,", "", r":8: .*'computeLatency' is missing"),
    "no table": (EDGE, "MemoryTypes:", "Memory:", r":16: .*mean 'MemoryTypes'"),
    "no map": (
        EDGE,
        EDGE,
        "hello",
        r":1: a hardware file is a map of fields, not 'hello'",
    ),
    "empty": (EDGE, EDGE, "", r":1: a hardware file is missing or empty"),
    "no list": (
        EDGE,
        "connects:\n",
        "connects: 3\n    fills:\n",
        "'connects' is a list",
    ),
    "kind": (EDGE, "type: GBuffer", "type: Buffer", "no entry named 'Buffer'"),
    "level": (EDGE, "GB: [cx", "GX: [cx", "the Hierarchy has no level 'GX'"),
    "axis": (EDGE, "[cx, cy]", "[2, cy]", "an axis of 'GB' in 'mesh' is text, not 2"),
    "axes": (EDGE, "[cx, cy]", "[cx]", "'GB' has one axis, and a mesh of 2 x 2"),
    "section": (
        EDGE,
        "  mesh:",
        "  colour: red\n  mesh:",
        "unknown field 'colour', known",
    ),
    "rate": (GPU, "hbm_gb_per_s: 4800", "hbm_gb_per_s: -1", "positive number, not -1"),
    "rates": (
        GPU,
        "{f64: 66.9",
        "{f63: 66.9",
        "a positive number for each of some of f64",
    ),
    "gpu": (
        GPU,
        "launch_us",
        "fan_us",
        r"unknown field 'fan_us'|'launch_us' is missing",
    ),
    "large": (EDGE, "capacity: 65536", "capacity: 9" + 20 * "0", "not fit in 64 bits"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_one_sentence_with_its_name(case: str, tmp_path: Path):
    text, old, new, message = WRONG[case]
    assert old in text
    file = tmp_path / "wrong.yaml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(DiagnosticException, match=message) as caught:
        attach(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(FileFormatError, match="cannot read the hardware file"):
        attach(tmp_path / "nowhere.yaml")


def test_a_file_that_is_no_text(tmp_path: Path):
    file = tmp_path / "binary.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="UTF-8"):
        attach(file)


def test_measured_rates_take_the_place_of_the_data_sheet():
    module = ModuleOp([])
    path = str(HARDWARE / "h200x1.yaml")
    AttachHardwarePass(path, rates="measured").apply(Context(), module)
    module.verify()
    gpu = attached_system(module).gpu
    assert gpu is not None
    default = attached_system(attach(HARDWARE / "h200x1.yaml")).gpu
    assert default is not None
    assert default.figures == gpu.figures
    module = ModuleOp([])
    AttachHardwarePass(path, rates="datasheet").apply(Context(), module)
    sheet = attached_system(module).gpu
    assert sheet is not None
    assert gpu.figures["hbm_gb_per_s"] == 4330
    assert sheet.figures["hbm_gb_per_s"] == 4800
    rates, known = gpu.figures["tensor_tflops"], sheet.figures["tensor_tflops"]
    assert isinstance(rates, dict)
    assert isinstance(known, dict)
    assert rates == {**known, "f16": 768, "bf16": 797}
    assert "measured" not in gpu.figures


@pytest.mark.parametrize("name", ["edge", "mi300x8"])
def test_rates_that_nobody_measured(name: str):
    with pytest.raises(PassFailedException, match=r"no measured figures.*calibrate"):
        AttachHardwarePass(str(HARDWARE / f"{name}.yaml"), rates="measured").apply(
            Context(), ModuleOp([])
        )


def test_lengths_are_a_fraction_that_gpus_expect():
    module = ModuleOp([])
    path = str(HARDWARE / "h200x1.yaml")
    AttachHardwarePass(path, lengths=0.25).apply(Context(), module)
    module.verify()
    gpu = attached_system(module).gpu
    assert gpu is not None
    assert gpu.figures["mean_length"] == 0.25
    for wrong in (0.0, 1.5):
        with pytest.raises(PassFailedException, match="above 0 and at most 1, not"):
            AttachHardwarePass(path, lengths=wrong).apply(Context(), ModuleOp([]))
    with pytest.raises(PassFailedException, match="@edge has no GPU; leave the option"):
        AttachHardwarePass(str(HARDWARE / "edge.yaml"), lengths=0.5).apply(
            Context(), ModuleOp([])
        )


def test_ranks_on_one_gpu_have_a_part_of_it_each():
    module, path = ModuleOp([]), str(HARDWARE / "h200x8.yaml")
    AttachHardwarePass(path, sharing=8).apply(Context(), module)
    module.verify()
    whole = machine_of(attached_system(attach(HARDWARE / "h200x8.yaml")), 8)
    part = machine_of(attached_system(module), 8)
    assert part.device.multiprocessors == 16
    assert part.device.memory.hbm_bandwidth == whole.device.memory.hbm_bandwidth / 8
    assert part.device.memory.l2_bytes == whole.device.memory.l2_bytes
    assert (part.net.bandwidth, part.net.barrier) == (
        part.device.memory.hbm_bandwidth,
        0,
    )
    with pytest.raises(PassFailedException, match="on one GPU, at least 1, not 0"):
        AttachHardwarePass(path, sharing=0).apply(Context(), ModuleOp([]))
    with pytest.raises(PassFailedException, match="@edge has no GPU; leave the option"):
        AttachHardwarePass(str(HARDWARE / "edge.yaml"), sharing=8).apply(
            Context(), ModuleOp([])
        )


def test_kernels_of_a_graph_start_in_less_time(tmp_path: Path):
    path = HARDWARE / "h200x1.yaml"
    lines = path.read_text().splitlines()
    other = tmp_path / "other.yaml"
    other.write_text("\n".join(x for x in lines if "graph_launch_us" not in x))
    times: list[float] = []
    for file, graph in ((path, False), (path, True), (other, True)):
        module = ModuleOp([])
        AttachHardwarePass(str(file), graph=graph).apply(Context(), module)
        module.verify()
        times.append(1e6 * device_of(attached_system(module)).times.launch)
    assert times == pytest.approx([4, 0.48, 4])
    with pytest.raises(PassFailedException, match="@edge has no GPU; leave the option"):
        AttachHardwarePass(str(HARDWARE / "edge.yaml"), graph=True).apply(
            Context(), ModuleOp([])
        )


@pytest.mark.parametrize(
    ("triton", "blocks"), [(None, 1), ("3.7", 1), ("3.8", 16), ("3.10", 16)]
)
def test_the_version_of_triton_says_what_it_compiles(triton: str | None, blocks: int):
    module, path = ModuleOp([]), str(HARDWARE / "h200x1.yaml")
    AttachHardwarePass(path, triton=triton).apply(Context(), module)
    module.verify()
    device = device_of(attached_system(module))
    assert device.limits.most_cluster_blocks == blocks
    assert device.triton.stores.stores_full_rows == (triton == "3.10")


def test_what_is_no_version_of_triton_is_rejected():
    path = str(HARDWARE / "h200x1.yaml")
    with pytest.raises(PassFailedException, match="a version of Triton in quotes"):
        AttachHardwarePass(path, triton="newest").apply(Context(), ModuleOp([]))
    with pytest.raises(PassFailedException, match="@edge has no GPU; leave the option"):
        AttachHardwarePass(str(HARDWARE / "edge.yaml"), triton="3.8").apply(
            Context(), ModuleOp([])
        )


def test_a_second_machine_is_rejected():
    module = attach(HARDWARE / "edge.yaml")
    with pytest.raises(PassFailedException, match="already has the hardware @edge"):
        attach(HARDWARE / "cloud.yaml", module)


def test_a_mesh_that_matches_is_kept_and_another_rejected():
    levels = {"rank": "HBM"}
    module = ModuleOp([MeshOp("h200x8", {"rank": 8}, levels)])
    attach(HARDWARE / "h200x8.yaml", module)
    assert [op.name for op in module.ops] == ["arch.system", "collective.mesh"]
    module = ModuleOp([MeshOp("h200x8", {"rank": 16}, levels)])
    with pytest.raises(PassFailedException, match=r"rank = 16 at HBM.*rank = 8 at HBM"):
        attach(HARDWARE / "h200x8.yaml", module)


def test_a_program_may_be_written_for_some_of_the_ranks():
    module = ModuleOp([MeshOp("h200x8", {"rank": 4}, {"rank": "HBM"})])
    attach(HARDWARE / "h200x8.yaml", module)
    (mesh,) = (op for op in module.ops if isinstance(op, MeshOp))
    assert mesh.axis_extents == {"rank": 4}
    for axes in ({"rank": 4, "cta": 2}, {"cta": 2}):
        other = ModuleOp([MeshOp("h200x8", axes, dict.fromkeys(axes, "HBM"))])
        with pytest.raises(PassFailedException, match="remove the mesh or correct it"):
            attach(HARDWARE / "h200x8.yaml", other)


def test_a_file_without_our_section_compiles_for_an_accelerator(tmp_path: Path):
    file = tmp_path / "plain.yaml"
    file.write_text(EDGE[: EDGE.index("# Read by comet only")])
    pipeline = f'attach-hardware{{path="{file}"}},comet-accelerator{{strategy=full}}'
    run = comet_opt(graph_text("gemm_softmax", (8, 4, 64)), pipeline, "comet")
    assert run.code == 0, run.err
    assert "CollectiveOperation" in run.out
    assert "    - OB_x\n" in run.out

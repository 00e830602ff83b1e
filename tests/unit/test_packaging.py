"""The wheel, not the checkout: complete, importable, extensible from outside."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

FOLDERS = ("dialects", "passes", "cost", "codegen")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
SAMPLE = ROOT / "samples" / "gemm_softmax.mlir"
CUSTOM_PASS = ROOT / "samples" / "custom_pass"
CLEAN = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")

IMPORT_ALL = """
import importlib, json, sys
for extra in ("torch", "triton", "matplotlib"):
    sys.modules[extra] = None
import comet
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        failed[name] = error.name
print(json.dumps({"file": comet.__file__, "failed": failed}))
"""
"""Imports every named module with the extras hidden; prints which of them it missed."""


BUILD = """
import sys, zipfile
from pathlib import Path
from setuptools.build_meta import build_wheel
target = Path(sys.argv[1])
with zipfile.ZipFile(target / build_wheel(target)) as wheel:
    wheel.extractall(target)
Path(wheel.filename).unlink()
"""
"""Builds the wheel of the current folder as pip does, and unpacks it elsewhere."""


def install(source: Path, target: Path) -> None:
    """Build the wheel of a folder, and unpack it into another one."""
    target.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, target],
        capture_output=True,
        text=True,
        check=False,
        cwd=source,
    )
    assert done.returncode == 0, done.stderr


def run(command: str, *args: str | Path, site: Path) -> str:
    """Run a tool of the environment with the packages in `site` before all others."""
    done = subprocess.run(
        [sys.executable, "-m", command, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EXTRAS = {
    "comet.pytorch": ("torch",),
    "comet.runtime": ("torch", "triton"),
    "comet.report": ("jinja2", "matplotlib"),
}
"""What the modules of some folders need beyond the base install."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is in the wheel that pip would build."""
    source = tmp_path_factory.mktemp("source")
    for folder in (*FOLDERS, "src"):
        shutil.copytree(ROOT / folder, source / folder, ignore=CLEAN)
    for file in FILES:
        shutil.copy(ROOT / file, source / file)
    target = tmp_path_factory.mktemp("site")
    install(source, target)
    return target


def modules_of(folder: Path, prefix: str) -> set[str]:
    """Name every module below a folder."""
    names = (path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py"))
    dotted = (".".join((prefix, *name.parts)) for name in names)
    return {name.removesuffix(".__init__") for name in dotted}


def test_the_wheel_holds_every_module_and_nothing_else(site: Path):
    expected = modules_of(ROOT / "src" / "comet", "comet")
    for folder in FOLDERS:
        expected |= modules_of(ROOT / folder, f"comet.{folder}")
    assert modules_of(site / "comet", "comet") == expected
    assert (site / "comet" / "py.typed").exists()
    packages = {entry.name for entry in site.iterdir() if entry.suffix != ".dist-info"}
    assert packages == {"comet"}


def test_every_module_imports_without_the_extras(site: Path):
    names = sorted(modules_of(site / "comet", "comet"))
    script = site / "import_all.py"
    script.write_text(IMPORT_ALL)
    report = json.loads(run("import_all", *names, site=site))
    assert Path(report["file"]).is_relative_to(site)
    for name, package in report["failed"].items():
        part = ".".join(name.split(".")[:2])
        assert package.partition(".")[0] in EXTRAS.get(part, ()), report


def test_the_wheel_holds_the_template_of_reports(site: Path):
    assert (site / "comet" / "report" / "page.html.jinja").exists()


def test_the_installed_tool_runs_our_passes(site: Path):
    out = run("comet.tools.comet_opt", SAMPLE, "-p", "decompose", site=site)
    assert "compound.contract" in out


def test_an_installed_package_adds_a_pass_to_every_tool(tmp_path: Path):
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(CUSTOM_PASS, source, ignore=CLEAN)
    install(source, site)
    for tool in ("comet.tools.comet_opt", "xdsl.tools.xdsl_opt"):
        out = run(tool, SAMPLE, "-p", "decompose,annotate-flops{minimum=1}", site=site)
        assert "sample.flops = 4194304" in out


def test_a_single_file_adds_a_pass(tmp_path: Path):
    plugin = CUSTOM_PASS / "annotate_flops" / "annotate_flops.py"
    args = (SAMPLE, "--load-pass-plugin", plugin, "-p", "decompose,annotate-flops")
    out = run("comet.tools.comet_opt", *args, site=tmp_path)
    assert "sample.flops = 4194304" in out

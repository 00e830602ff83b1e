"""The structure of the source tree: no circles of imports, and layers that hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT

FOLDERS = {"comet": ROOT / "src" / "comet"} | {
    f"comet.{name}": ROOT / name for name in ("dialects", "passes", "cost", "codegen")
}

LAYERS = (
    (
        "digraph",
        "frames",
        "garbage",
        "kinds",
        "op_table",
        "philox",
        "recent",
        "registry",
        "runtime",
        "text_table",
    ),
    ("dialects",),
    ("yaml_file", "hardware_file"),
    ("cost",),
    ("passes.analysis", "passes.search", "passes.pipeline", "passes.function_pass"),
    (
        "passes.attach_hardware",
        "passes.annotate_cost",
        "passes.graph",
        "passes.sharding",
        "passes.schedule",
        "passes.dataflow",
        "passes.triton",
        "passes.comet",
    ),
    ("passes.explore",),
    ("passes.pipelines",),
    ("passes",),
    ("codegen", "interpreter"),
    ("universe",),
    (
        "tools.checks",
        "tools.diagnostics",
        "tools.extras",
        "tools.located_parser",
        "tools.mapping_table",
        "tools.option_check",
        "tools.option_types",
        "tools.pass_list",
        "tools.renamed",
    ),
    ("api",),
    ("batch", "report"),
    ("api.functions",),
    ("pytorch",),
    ("tools",),
)
"""Modules by layer, lowest first: a module imports none of a layer above its own."""

APART = {
    "codegen": ("passes",),
    "interpreter": ("passes", "cost", "codegen"),
    "cost.accelerator": ("dialects",),
    "cost.gpu": ("dialects",),
    "cost.collectives": ("dialects",),
    "runtime": ("dialects", "passes", "cost", "codegen", "interpreter", "tools"),
}
"""What some modules do not import although it is no layer above them."""

MACHINE = "one machine's passes need not load those of the other"
FLAGS = "flags are checked before numpy is loaded"
TORCH = "torch takes seconds, and only some runs need it"
EXTRA = "matplotlib is in an extra, and takes a second"
EXACT = "few searches are exact"
BACKEND = "a back end is loaded when it is asked for"

LATE = {
    "comet.cost.accelerator.model:price": "few prices are those of the tool",
    "comet.cost.from_ir.collective:pricer_for": MACHINE,
    "comet.passes.annotate_cost:plan_estimates": MACHINE,
    "comet.passes.pipelines.comet_accelerator:best": EXACT,
    "comet.passes.pipelines.comet_accelerator:chain": "few graphs are chains",
    "comet.passes.pipelines.comet_accelerator:constraints": EXACT,
    "comet.passes.schedule.fuse:fusion_machine": MACHINE,
    "comet.passes.schedule.tile:tile_function": MACHINE,
    "comet.passes.schedule.tile:chosen_plan": MACHINE,
    "comet.passes.search.ahead:_enlarge": "Windows has none",
    "comet.pytorch.backend:comet_backend": "few models ask for CUDA graphs",
    "comet.pytorch.exporting:_imported": "few models are spread over ranks",
    "comet.pytorch.processes:_interpreted": BACKEND,
    "comet.pytorch.processes:_on_gpu": BACKEND,
    "comet.runtime.child:_counting": TORCH,
    "comet.runtime.child:_report_of_one": TORCH,
    "comet.runtime.child:_report_of_ranks": TORCH,
    "comet.runtime.child:_times": TORCH,
    "comet.runtime.child:expect_gpu": TORCH,
    "comet.runtime.child:outcome": TORCH,
    "comet.runtime.program:expect_tensor": TORCH,
    "comet.runtime.peer_memory:__init__": BACKEND,
    "comet.runtime.peer_memory:_iris": BACKEND,
    "comet.tools.comet_cost:_module": FLAGS,
    "comet.tools.comet_cost:_price": FLAGS,
    "comet.tools.comet_cost:_report": EXTRA,
    "comet.tools.comet_cost:_print_files": FLAGS,
    "comet.tools.comet_cost:_print_chain": FLAGS,
    "comet.tools.comet_opt:_explaining": "few runs ask for the tables",
    "comet.tools.comet_explore:_several_answered": FLAGS,
    "comet.tools.comet_explore:_answered": FLAGS,
    "comet.tools.comet_explore:_verified": FLAGS,
    "comet.tools.comet_opt:_read_comet": "few inputs are COMET files",
    "comet.tools.comet_opt:_new_reporting": "few runs ask for a report",
    "comet.tools.compile_reporting:write": EXTRA,
    "comet.tools.exploring:__init__": EXTRA,
}
"""The functions that import something, and why they do so late."""

LINES = 500
"""The most lines of a file."""

SCREEN = 60
"""The most lines of a function."""

FEW = 10
"""A folder of no more modules needs no order in which to read them."""


@dataclass(frozen=True)
class Import:
    """An import statement of one of our modules."""

    module: str
    function: str | None
    """The function that it is in, None at the top of the file."""
    targets: tuple[str, ...]
    """Our modules that it names; none if it is of another package."""

    @property
    def place(self) -> str:
        """The module, and the function if there is one."""
        return f"{self.module}:{self.function}"


@cache
def modules() -> Mapping[str, Path]:
    """Return the file of each module of comet, by its full name."""
    found: dict[str, Path] = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return the syntax tree of each module of comet, by its full name."""
    return {module: ast.parse(path.read_text()) for module, path in modules().items()}


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements, handlers and cases right inside of one, or of a module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module, those of classes and functions too."""
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        yield from functions(node)


@cache
def imports() -> tuple[Import, ...]:
    """Return every import statement of comet, those inside functions too."""
    return tuple(
        each
        for module, tree in trees().items()
        for each in _imports(module, tree, None)
    )


def _imports(module: str, tree: ast.AST, function: str | None) -> Iterator[Import]:
    for node in statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield Import(module, function, tuple(_targets(node)))
        elif isinstance(node, ast.FunctionDef):
            yield from _imports(module, node, node.name)
        else:
            yield from _imports(module, node, function)


def _targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield our modules that a statement names: `from package import module` too."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            candidates = (alias.name,)
        else:
            candidates = (f"{node.module}.{alias.name}", node.module or "")
        yield from [name for name in candidates if name in modules()][:1]


@cache
def graph() -> Mapping[str, frozenset[str]]:
    """Return the modules that each module imports, at any time."""
    found: dict[str, set[str]] = {module: set() for module in modules()}
    for each in imports():
        found[each.module].update(each.targets)
    return {module: frozenset(targets) for module, targets in found.items()}


def circle() -> list[str]:
    """Return the modules of one circle of imports, empty if there is none."""
    left: dict[str, frozenset[str]] = dict(graph())
    while leaves := [module for module, targets in left.items() if not targets]:
        for leaf in leaves:
            del left[leaf]
        left = {module: targets.difference(leaves) for module, targets in left.items()}
    path: list[str] = []
    module = next(iter(left), None)
    while module is not None and module not in path:
        path.append(module)
        module = next(iter(left[module]))
    return [] if module is None else path[path.index(module) :]


def is_in(module: str, part: str) -> bool:
    """Return whether a module is `part` of comet, or lies below it."""
    return f"{module}.".startswith(f"comet.{part}.")


def layer_of(module: str) -> int:
    """Return the number of a module's layer, that of the longest name that fits."""
    fits = [
        (len(part), number)
        for number, parts in enumerate(LAYERS)
        for part in parts
        if is_in(module, part)
    ]
    assert fits, f"{module} is in no layer"
    return max(fits)[1]


def test_no_circle_of_imports():
    assert circle() == []


def test_no_import_goes_up():
    wrong = [
        f"{module} imports {target}"
        for module in modules().keys() - {"comet"}
        for target in graph()[module]
        if layer_of(target) > layer_of(module)
    ]
    assert wrong == []


@pytest.mark.parametrize("part", APART)
def test_some_parts_know_nothing_of_others(part: str):
    wrong = [
        f"{module} imports {target}"
        for module, targets in graph().items()
        if is_in(module, part)
        for target in targets
        if any(is_in(target, other) for other in APART[part])
    ]
    assert wrong == []


def test_imports_inside_functions_are_listed():
    late = {each.place for each in imports() if each.function is not None}
    assert late - LATE.keys() == set(), "import at the top, or list it with its reason"
    assert LATE.keys() - late == set(), "no longer inside a function"


def test_files_are_short():
    long = {
        module: lines
        for module, path in modules().items()
        if (lines := len(path.read_text().splitlines())) > LINES
    }
    assert long == {}


def test_large_folders_say_what_to_read():
    """Their docstrings name each module, but for one op each in a folder of rules."""
    unnamed: dict[str, list[str]] = {}
    for package, tree in trees().items():
        inside = [module.rpartition(".") for module in modules()]
        names = [name for folder, _, name in inside if folder == package]
        text = ast.get_docstring(tree) or ""
        missing = [name for name in names if f"`{name}`" not in text]
        if len(names) > FEW and missing:
            unnamed[package] = missing
    assert unnamed.keys() == {"comet.passes.graph.decompose.rules"}, unnamed


def test_functions_fit_a_screen():
    long = {
        f"{module}:{node.name}"
        for module, tree in trees().items()
        for node in functions(tree)
        if (node.end_lineno or node.lineno) - node.lineno >= SCREEN
    }
    assert long == set()

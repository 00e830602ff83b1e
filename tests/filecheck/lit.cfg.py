"""lit: every .mlir file under this folder is a test; comet-opt must be on PATH."""

# lit runs this file with `config` and `lit_config` defined.

import os
import sys
from pathlib import Path

import lit.formats

ROOT = Path(__file__).parents[2]
OPT = "comet-opt %s --split-input-file"
PRINTED_TWICE = "comet-opt --print-op-generic --split-input-file %s"
READ_AGAIN = "comet-opt --split-input-file"


config.name = "comet"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(ROOT / "out" / "lit")
config.environment["PATH"] = os.environ["PATH"]

# Custom syntax -> generic syntax -> custom syntax, then the CHECK lines.
config.substitutions.append(
    ("COMET_ROUNDTRIP", f"{PRINTED_TWICE} | {READ_AGAIN} | filecheck %s")
)
# Custom syntax -> custom syntax -> generic syntax, then the CHECK-GENERIC lines.
config.substitutions.append(
    (
        "COMET_GENERIC_ROUNDTRIP",
        f"{OPT} | {READ_AGAIN} --print-op-generic "
        "| filecheck %s --check-prefix=CHECK-GENERIC",
    )
)
config.substitutions.append(("%root", str(ROOT)))
# Every pass of a pipeline is verified.
config.substitutions.append((r"\bcomet-opt\b", "comet-opt --verify-each"))

# `lit -DCOVERAGE=1 tests/filecheck` measures coverage of the tool as well. These come
# last, so that what the substitutions above expand to is covered too.
if "COVERAGE" in lit_config.params:
    config.substitutions.append(
        (
            r"\bcomet-opt\b",
            f"python -m coverage run --rcfile={ROOT / 'pyproject.toml'} "
            f"--data-file={ROOT / '.coverage'} -p -m comet.tools.comet_opt",
        )
    )
else:
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from preloaded_tools import preloaded_tools

    # One process runs a pipe: the client is given `|` as an argument.
    client = " ".join(preloaded_tools())
    config.substitutions += [
        (r" 2>&1 \| (?=(?:comet-opt|filecheck) )", " '|&' "),
        (r"(?<!/dev/null) \| (?=(?:comet-opt|filecheck) )", " '|' "),
        (r"\bnot (?=comet-opt )", f"{client} not "),
        (r"(?<!\|' )(?<!\|&' )(?<!not )\b(?=(?:comet-opt|filecheck) )", f"{client} "),
    ]

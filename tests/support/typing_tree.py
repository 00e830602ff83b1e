"""
Lay the packages out in build/typing as one package `comet`, for type checkers.

They cannot follow the mapping of the editable install, and would read each module
twice if they were given the root folders and a tree to import from. Files are links,
folders are not: a checker does not look into linked folders.
"""

import os
import shutil

from paths import ROOT

TREE = ROOT / "build" / "typing"


def main() -> None:
    shutil.rmtree(TREE, ignore_errors=True)
    link(ROOT / "src" / "comet", TREE / "comet")
    for folder in ("dialects", "passes", "cost", "codegen"):
        link(ROOT / folder, TREE / "comet" / folder)


def link(source: os.PathLike[str], target: os.PathLike[str]) -> None:
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, target, ignore=caches, copy_function=os.symlink)


if __name__ == "__main__":
    main()

"""Maps the top-level folders onto the import package `comet`."""

from setuptools import find_packages, setup

FOLDERS = ("dialects", "passes", "cost", "codegen")

setup(
    package_dir={"comet": "src/comet", **{f"comet.{f}": f for f in FOLDERS}},
    packages=[
        *find_packages("src"),
        *(
            f"comet.{p}"
            for p in find_packages(include=[g for f in FOLDERS for g in (f, f"{f}.*")])
        ),
    ],
)

"""
Runs the kernels of this folder on a GPU: checks them, then times them.

    python run.py --minutes 8 --out R.json

A second call with the same R.json does what is missing. benchmarks/README.md says more.
"""

from gpu_run.command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""
Runs the kernels of this folder on a GPU: checks them, then times them.

    python run.py --minutes 8 --out R.json

A second call with the same R.json does what is missing. docs/gpu-benchmarks.md of comet
says what is run, and what R.json holds.
"""

import signal

from gpu_run.command import main

if __name__ == "__main__":
    # Whoever ends it by a signal gets whole results, and no process is left.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())

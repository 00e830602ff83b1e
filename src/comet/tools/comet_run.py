"""The command `comet-run`; `comet.runtime` does the work."""

from comet.runtime.command import main

if __name__ == "__main__":
    raise SystemExit(main())

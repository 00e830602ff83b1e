"""Where things are in the checkout."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
HARDWARE = SAMPLES / "hardware"
DATA = ROOT / "tests" / "data"
COST_DATA = DATA / "cost"
SUPPORT = ROOT / "tests" / "support"

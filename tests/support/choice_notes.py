"""What functions note of choices, which is all that an expanded pipeline lacks."""

from xdsl.dialects.builtin import ModuleOp

from comet.dialects.schedule.attributes import NARROW
from comet.passes.dataflow.bsp_to_dataflow import CHOSEN
from comet.passes.explore.quick import STREAM
from comet.passes.schedule.fuse.strategy import BETWEEN, CHUNKS, STRATEGY
from comet.passes.sharding.distribute.auto import SHARDED_DIMS

NOTES = (STREAM, SHARDED_DIMS, STRATEGY, CHUNKS, BETWEEN, NARROW, CHOSEN)
"""What says that a search was made, and is not said when its outcome is given."""


def without_notes(module: ModuleOp) -> str:
    """Return `module` as text, without notes; it loses them."""
    for op in module.walk():
        for name in NOTES:
            op.attributes.pop(name, None)
    return str(module)

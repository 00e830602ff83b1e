"""The names that a mistaken one may stand for, for errors."""

from difflib import get_close_matches

from comet.dialects import get_all_dialects

RENAMED = {
    "apart": "isolate_contractions",
    "dataflow.inbox": "dataflow.receive_buffer",
    "exchange-terms": "lower-reductions",
    "tl.own": "tl.symmetric_address",
    "tl.place": "tl.rank_and_program_id",
}
"""From old names to new ones; an old name is no alias."""


def new_name(name: str) -> str:
    """Return the end of a sentence that says the new name of `name`, or nothing."""
    return f"; it is called '{RENAMED[name]}' now" if name in RENAMED else ""


def similar_op(name: str) -> str | None:
    """Return the op of one of comet's dialects with the most similar name, if any."""
    dialects = get_all_dialects()
    close = get_close_matches(name.partition(".")[0], dialects, n=1)
    ops = [op.name for dialect in close for op in dialects[dialect]().operations]
    return next(iter(get_close_matches(name, ops, n=1)), None)

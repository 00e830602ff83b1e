"""New names of renamed passes, ops and option values, for errors."""

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

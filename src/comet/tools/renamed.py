"""Names of passes, ops and option values that have new ones: an error says which."""

RENAMED = {
    "apart": "isolate_contractions",
    "dataflow.inbox": "dataflow.receive_buffer",
    "exchange-terms": "lower-reductions",
    "tl.own": "tl.symmetric_address",
    "tl.place": "tl.rank_and_program_id",
}
"""The new name of each old one; an old name is no alias."""


def new_name(name: str) -> str:
    """Return how a sentence goes on if `name` has another one now, else nothing."""
    return f"; it is called '{RENAMED[name]}' now" if name in RENAMED else ""

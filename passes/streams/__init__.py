"""The streaming forms that `stream` knows: one file and one entry per form."""

from comet.dialects.compound import FoldOp
from comet.passes.streams.attention import AttentionForm
from comet.passes.streams.form import Form
from comet.passes.streams.softmax import SoftmaxForm
from comet.passes.streams.welford import WelfordForm

FORMS: tuple[Form, ...] = (AttentionForm(), SoftmaxForm(), WelfordForm())
"""A form that covers more stands before one that covers a part of it."""


def form_of(fold: FoldOp) -> Form | None:
    """Return the form whose step and merge a fold has, None if it has another's."""
    carries = [value.type for value in fold.init]
    for form in FORMS:
        if len(fold.ins) != len(form.inputs) or len(form.carries) != len(carries):
            continue
        step = form.step_region(fold.dim.data, [v.type for v in fold.ins], carries)
        merge = form.merge_region(carries)
        if fold.step.is_structurally_equivalent(
            step
        ) and fold.merge.is_structurally_equivalent(merge):
            return form
    return None

"""The streaming forms that `stream` knows: one file and one entry per form."""

from xdsl.ir import Region

from comet.dialects.compound import FoldOp
from comet.dialects.compound.dims import names_of
from comet.passes.graph.stream.attention import AttentionForm
from comet.passes.graph.stream.form import Form
from comet.passes.graph.stream.softmax import SoftmaxForm
from comet.passes.graph.stream.welford import WelfordForm

FORMS: tuple[Form, ...] = (AttentionForm(), SoftmaxForm(), WelfordForm())
"""A form that covers more stands before one that covers a part of it."""


def form_of(fold: FoldOp) -> Form | None:
    """Return the form whose step (or join) and merge a fold has, None if another's."""
    return next((form for form in FORMS if _has_form(fold, form)), None)


def _has_form(fold: FoldOp, form: Form) -> bool:
    carries = [value.type for value in fold.init]
    if len(form.carries) != len(carries):
        return False
    inputs, dim = [value.type for value in fold.ins], fold.dim.data
    steps: list[Region] = []
    if len(inputs) == len(form.inputs):
        steps.append(form.step_region(dim, inputs, carries))
    if len(inputs) == len(carries) and all(dim in names_of(type_) for type_ in inputs):
        steps.append(form.join_region(dim, inputs, carries))
    return any(fold.step.is_structurally_equivalent(step) for step in steps) and (
        fold.merge.is_structurally_equivalent(form.merge_region(carries))
    )

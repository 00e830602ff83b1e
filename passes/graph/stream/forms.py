"""The streaming forms of `stream`: one file and one entry per form."""

from xdsl.ir import Region

from comet.dialects.compound import FoldOp
from comet.dialects.compound.dims import names_of
from comet.passes.graph.stream.attention import AttentionForm, DropoutForm
from comet.passes.graph.stream.form import StreamForm
from comet.passes.graph.stream.softmax import SoftmaxForm
from comet.passes.graph.stream.welford import WelfordForm

FORMS: tuple[StreamForm, ...] = (
    AttentionForm(),
    DropoutForm(),
    SoftmaxForm(),
    WelfordForm(),
)
"""In the order of matching: a form comes before one that matches a part of it."""


def form_of(fold: FoldOp) -> StreamForm | None:
    """Return the form whose step (or join) and merge a fold has, None for others."""
    return next((form for form in FORMS if _has_form(fold, form)), None)


def _has_form(fold: FoldOp, form: StreamForm) -> bool:
    iter_args = [value.type for value in fold.init]
    if len(form.iter_args) != len(iter_args):
        return False
    inputs, dim = [value.type for value in fold.ins], fold.dim.data
    steps: list[Region] = []
    if len(inputs) == len(form.inputs):
        steps.append(form.step_region(dim, inputs, iter_args))
    if len(inputs) == len(iter_args) and all(
        dim in names_of(type_) for type_ in inputs
    ):
        steps.append(form.join_region(dim, inputs, iter_args))
    return any(fold.step.is_structurally_equivalent(step) for step in steps) and (
        fold.merge.is_structurally_equivalent(form.merge_region(iter_args))
    )

"""The streaming forms that `stream` knows: one file and one entry per form."""

from comet.passes.streams.form import Form
from comet.passes.streams.softmax import SoftmaxForm
from comet.passes.streams.welford import WelfordForm

FORMS: tuple[Form, ...] = (SoftmaxForm(), WelfordForm())

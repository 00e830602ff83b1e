"""The rates of a GPU: what COMET's architecture schema has no words for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from comet.dialects.arch.fields import (
    Field,
    Fields,
    FieldsDirective,
    dictionary_of,
    fields_of,
)
from comet.dialects.arch.schema import GPU, mistakes


@dataclass(frozen=True)
class GpuRates:
    """What one GPU does per second, and what its control costs, in SI units."""

    clock: float
    """Hz."""
    multiprocessors: int
    """Streaming multiprocessors or compute units."""
    tensor: Mapping[str, float]
    """Dense matrix floating-point operations per second, by element type."""
    vector: Mapping[str, float]
    """Other floating-point operations per second, by element type."""
    hbm_bandwidth: float
    """Bytes per second."""
    l2_bytes: int
    l2_bandwidth: float
    """Bytes per second."""
    link_bandwidth: float
    """Bytes per second that one GPU sends to its peers, one direction."""
    link_latency: float
    """Seconds from a store to its arrival at a peer."""
    launch: float
    """Seconds to start a kernel."""
    barrier: float
    """Seconds that a barrier across all GPUs costs when all arrive together."""
    signal: float
    """Seconds from setting a flag at a peer to the peer's seeing it."""
    links: int
    """Equal links that share the bandwidth, one to each peer; 1 is a switch."""
    remote_load: float | None
    """Seconds from a load of a peer's memory to its use."""
    remote_caches: int | None
    """Parts of a GPU that each fetch a peer's bytes for themselves."""
    graph_launch: float
    """Seconds to start a kernel of a captured graph."""
    skew: float
    """How much longer the slowest GPU takes for a kernel, as a share of its time."""


@irdl_op_definition
class GpuOp(IRDLOperation):
    """
    The rates of each GPU of a system, as the hardware file gives them.

    ```mlir
    arch.gpu {clock_ghz = 1.98, multiprocessors = 132, tensor_tflops = {f16 = 989.4}}
    ```
    """

    name = "arch.gpu"
    fields = prop_def(DictionaryAttr)
    custom_directives = (FieldsDirective,)
    assembly_format = "custom<FieldsDirective>($fields) attr-dict"

    def __init__(self, fields: Fields):
        super().__init__(properties={"fields": dictionary_of(fields)})

    @property
    def rates(self) -> GpuRates:
        """The rates in SI units."""
        fields = fields_of(self.fields)
        return GpuRates(
            clock=_number(fields["clock_ghz"]) * 1e9,
            multiprocessors=int(_number(fields["multiprocessors"])),
            tensor=_rates(fields["tensor_tflops"]),
            vector=_rates(fields["vector_tflops"]),
            hbm_bandwidth=_number(fields["hbm_gb_per_s"]) * 1e9,
            l2_bytes=int(_number(fields["l2_bytes"])),
            l2_bandwidth=_number(fields["l2_gb_per_s"]) * 1e9,
            link_bandwidth=_number(fields["link_gb_per_s"]) * 1e9,
            link_latency=_number(fields["link_latency_us"]) * 1e-6,
            launch=_number(fields["launch_us"]) * 1e-6,
            barrier=_number(fields["barrier_us"]) * 1e-6,
            signal=_number(fields["signal_us"]) * 1e-6,
            links=int(_number(fields.get("links", 1))),
            remote_load=_seconds(fields.get("remote_load_us")),
            remote_caches=_count(fields.get("remote_caches")),
            graph_launch=_number(fields.get("graph_launch_us", fields["launch_us"]))
            * 1e-6,
            skew=_number(fields.get("skew", 0)),
        )

    def verify_(self) -> None:
        for _, mistake in mistakes(fields_of(self.fields), GPU):
            raise VerifyException(f"'{self.name}' op {mistake}")


def rate_name(element: Attribute) -> str:
    """
    Return the name under which hardware files give the rates of an element type.

    All floats of 8 bits, such as f8E4M3FN, are f8; other types have their own names.
    """
    name = str(element)
    return "f8" if name.startswith("f8") else name


def _number(value: Field) -> float:
    assert isinstance(value, int | float)
    return value


def _seconds(microseconds: Field) -> float | None:
    return None if microseconds is None else _number(microseconds) * 1e-6


def _count(value: Field) -> int | None:
    return None if value is None else int(_number(value))


def _rates(value: Field) -> dict[str, float]:
    assert isinstance(value, Mapping)
    return {name: _number(rate) * 1e12 for name, rate in value.items()}

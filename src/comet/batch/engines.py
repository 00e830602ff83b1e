"""The processes that search, on this machine or in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import _exit, getpid, getppid
from socket import create_connection
from threading import Thread
from time import sleep
from typing import Protocol, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from comet.tools.diagnostics import UsageError
from comet.tools.extras import loaded

A = TypeVar("A")
R = TypeVar("R")

DASK = "dask://"

CONNECT = 5
"""Seconds to wait for the scheduler of a cluster, and for its first worker."""

Call: TypeAlias = tuple[Callable[[A], R], tuple[A], dict[str, object]]
"""A call as joblib's `delayed` makes it: function, arguments, keywords."""


class _Parallel(Protocol):
    """The part of `joblib.Parallel` that is used here."""

    def __call__(self, calls: Iterable[Call[A, R]], /) -> Iterable[R]: ...


@dataclass(frozen=True)
class Engine:
    """The processes that answer questions."""

    name: str = "local"
    """`local`, `dask://HOST:PORT` of a Dask scheduler, or `ray`."""
    jobs: int = -1
    """The processes of this machine; -1 for one on each core."""

    def __post_init__(self) -> None:
        """Raise UsageError if there is no such engine."""
        if self.name not in ("local", "ray") and not self.name.startswith(DASK):
            raise UsageError(
                f"there is no engine '{self.name}'; choose local, ray, or the address "
                "of a Dask scheduler as dask://HOST:PORT"
            )
        if self.jobs < 1 and self.jobs != -1:
            raise UsageError("the number of jobs is positive, or -1 for all cores")

    def results(self, function: Callable[[A], R], items: Iterable[A]) -> Iterator[R]:
        """
        Yield the function's results as they are ready, in any order.

        `ray` gives all of them at the end. Raises UsageError if a package is missing,
        or if the cluster does not answer or has no workers.
        """
        joblib = loaded("joblib", "search", "a batch")
        ready = "list" if self.name == "ray" else "generator_unordered"
        calls: Iterable[Call[A, R]] = ((function, (item,), {}) for item in items)
        with self._connected(), joblib.parallel_config(self._backend):
            parallel = cast(_Parallel, joblib.Parallel(return_as=ready, **self._pool))
            yield from parallel(calls)

    @property
    def _backend(self) -> str:
        """The name of joblib's back end."""
        if self.name.startswith(DASK):
            return "dask"
        return "loky" if self.name == "local" else self.name

    @property
    def _pool(self) -> dict[str, object]:
        """The options of joblib for the processes."""
        if self._backend != "loky":
            return {"n_jobs": -1}
        return {
            "n_jobs": self.jobs,
            "initializer": _end_with,
            "initargs": (getpid(),),
        }

    def _connected(self) -> AbstractContextManager[object]:
        """Return a context in which joblib knows the engine."""
        if self.name.startswith(DASK):
            return self._dask(self.name.removeprefix(DASK))
        if self.name == "ray":
            loaded("ray.util.joblib", "ray", "the engine ray").register_ray()
        return nullcontext()

    def _dask(self, address: str) -> AbstractContextManager[object]:
        distributed = loaded("distributed", "dask", "the engine dask")
        try:
            _connect(address)  # the client tries again for longer than its timeout
            client = distributed.Client(f"tcp://{address}", timeout=CONNECT)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"no Dask scheduler answers at '{address}'; start one with "
                "'dask scheduler', and name its HOST:PORT"
            ) from error
        check_workers(client, address)
        return client


class _Client(Protocol):
    """The part of `distributed.Client` that is used here."""

    def wait_for_workers(self, n_workers: int, timeout: float) -> None: ...
    def close(self) -> None: ...


def check_workers(client: _Client, address: str) -> None:
    """Close the client and raise UsageError unless the cluster soon has a worker."""
    try:
        client.wait_for_workers(1, CONNECT)
    except TimeoutError as error:
        client.close()
        raise UsageError(
            f"the Dask scheduler at '{address}' has no workers; start them with 'dask "
            f"worker tcp://{address} --nthreads 1'"
        ) from error


def _end_with(parent: int) -> None:
    """
    Start a thread that ends this process when its parent, a process id, has ended.

    Otherwise one whose parent was killed would wait for ever to hand over its result.
    """

    def watch() -> None:
        while getppid() == parent:
            sleep(0.5)
        _exit(1)

    Thread(target=watch, daemon=True).start()


def _connect(address: str) -> None:
    """Raise OSError or ValueError unless something answers at HOST:PORT in time."""
    place = urlsplit(f"//{address}")
    create_connection((place.hostname, place.port or 0), CONNECT).close()

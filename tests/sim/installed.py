"""Takes PyIceberg's clock, its ids and its threads away, for as long as a history runs.

The product gets clock, ids and sleep as arguments. What PyIceberg takes from the system by itself comes from the world
here: the time of a snapshot, the id of a snapshot, of a table and of a manifest, the marks between Avro's blocks. Work
that the product hands to threads is done at once by whoever asks, so that the baton stays where it is.
"""

from __future__ import annotations

import datetime as dt
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pyiceberg.avro.file import AvroFileHeader
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.utils.concurrent import ExecutorFactory
from typing_extensions import override

from tests.sim.world import World


class _AtOnce(Executor):
    """Does what it is given when it is given it."""

    def __init__(self, *_: Any) -> None:
        pass

    @override
    def submit(self, work: Callable[..., Any], /, *args: Any, **how: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **how))
        except Exception as error:  # noqa: BLE001  # given to whoever asks for the result, as an executor does
            done.set_exception(error)
        return done

    @override
    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **_: Any) -> Iterator[Any]:
        return iter([fn(*each) for each in zip(*iterables, strict=False)])


_schemas: dict[str, Any] = {}
_readers: dict[tuple[int, ...], Any] = {}
_get_schema = AvroFileHeader.get_schema


def _schema_once(header: AvroFileHeader) -> Any:
    """Half of a history's time went into making the same few schemas of the same text."""
    text = header.meta["avro.schema"]
    if text not in _schemas:
        _schemas[text] = _get_schema(header)
    return _schemas[text]


def _reader_once(written: Any, wanted: Any, types: Any, enums: Any) -> Any:
    """Readers have no state; schemas are kept, so that their ids stay theirs."""
    key = (id(written), id(wanted), *map(id, types.values()), *map(id, enums.values()))
    if key not in _readers:
        _readers[key] = (resolve_reader(written, wanted, types, enums), written, wanted)
    return _readers[key][0]


def _computed_once(cached: functools.cached_property[Any], instance: Any, _owner: Any = None) -> Any:
    """As Python does it from 3.12 on. Before, a lock of the whole class is held meanwhile, across the seams."""
    if instance is None:
        return cached
    if cached.attrname not in instance.__dict__:
        instance.__dict__[cached.attrname] = cached.func(instance)
    return instance.__dict__[cached.attrname]


@contextmanager
def installed(world: World) -> Iterator[None]:
    """Let a world's clock and dice be those of PyIceberg."""

    class Clock(dt.datetime):
        @classmethod
        @override
        def now(cls, tz: dt.tzinfo | None = None) -> Clock:
            return cls.fromtimestamp(world.clock_ms / 1000, tz or dt.UTC)

    class Datetimes:
        datetime = Clock

        def __getattr__(self, name: str) -> Any:
            return getattr(dt, name)

    clear_manifest_cache()
    with (
        patch.object(os, "urandom", world.random_bytes),
        patch.object(time, "time", lambda: world.clock_ms / 1000),
        patch("pyiceberg.table.update.datetime", Clock),
        patch("pyiceberg.table.metadata.datetime", Datetimes()),
        patch("keptlog.table.changes.partition_writers.ThreadPoolExecutor", _AtOnce),
        patch.object(functools.cached_property, "__get__", _computed_once),
        patch.object(AvroFileHeader, "get_schema", _schema_once),
        patch("pyiceberg.avro.file.resolve_reader", _reader_once),
        patch.object(ExecutorFactory, "get_or_create", staticmethod(_AtOnce)),
    ):
        yield

"""Where a code location learns which topics there are, as cheaply as it can.

    run              what its code server has seen, handed to it by Dagster
    code server      1. the state file, if topics_sensor keeps it: no catalog is asked
                     2. a look at the home, through the observer that the sensors of this process use too
                     3. the state file, however old, if the home can't be reached

A run asks neither catalog nor storage before it begins, whatever the number of topics: what was seen is part of the
plan that Dagster hands it. A run that was handed nothing, or by another version of keptlog, goes the way of a code
server. One look reads for a bounded time, and a home that nobody has looked at yet may take several; when they have
taken ``LOADING_MS``, the topics that are missing are counted in an asset.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType

from keptlog.dagster.orchestration.seen import Seen, as_before, shown
from keptlog.dagster.orchestration.state_file import StateFile
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError
from keptlog.home import monotonic_ms

_logger = logging.getLogger(__name__)

LOADING_MS = 120_000
"""A code server may take three minutes to start, as Dagster is delivered."""


@contextmanager
def definitions_that_stay() -> Iterator[None]:
    """Around the making of definitions: thousands of objects, none of which goes before the process does.

    Looking for garbage among them again and again takes a third of the time of loading a thousand topics. Where a code
    location is loaded, nobody looks through them later either.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if DefinitionsLoadContext.is_set():
            gc.freeze()
        if was_on:
            gc.enable()


def seen_topics(log_store: LogStoreResource, state: StateFile | None) -> Seen:
    """What is to be shown: in a run what its code server has seen, else what is known, or there, now."""
    context = DefinitionsLoadContext.get()
    name = f"keptlog {log_store.identity}"
    is_run = context.load_type is DefinitionsLoadType.RECONSTRUCTION
    handed = context.reconstruction_metadata.get(name) if is_run else None
    seen = Seen.of_json(handed)
    text = handed if seen else None
    seen = seen or _loaded(log_store, state)
    # A run hands it on too: its steps may be processes of their own.
    context.add_to_pending_reconstruction_metadata(name, text or seen.as_json())
    return seen


def _loaded(log_store: LogStoreResource, state: StateFile | None) -> Seen:
    stored = state.read() if state else None
    try:
        if stored and stored.is_fresh(ClockResource().read_ms()):
            return stored.seen
        return _looked(log_store)
    except (KeptlogError, OSError) as error:
        if state and stored:
            why = f"{error} (topics are shown {state.told(stored)})"
            _logger.warning("%s can't be read: %s", log_store.told, why)
            return as_before(stored.seen, why)
        return Seen(unreachable=str(error))


def _looked(log_store: LogStoreResource) -> Seen:
    """What is there now: what the sensors of this process will need anyway."""
    until_ms = monotonic_ms() + LOADING_MS
    overview = log_store.observer.look(ClockResource().read_ms())
    while overview.behind and monotonic_ms() < until_ms:
        overview = log_store.observer.look(ClockResource().read_ms())
    return shown(overview)

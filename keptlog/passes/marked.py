"""A run that died and could mark no log, and what became of logs that were to be marked in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keptlog.errors import KeptlogError


@dataclass(frozen=True, slots=True)
class Marked:
    """What became of logs that were to be marked; those that are not due are in none of these."""

    names: tuple[str, ...]
    """The topic-partitions that are marked now."""
    failed: Mapping[str, KeptlogError]
    """Those that could not be, or a name whose logs can't be read, with the reason."""
    untried: tuple[str, ...] = ()
    """Those that were not tried because too much was out of reach."""


@dataclass(frozen=True, slots=True)
class Death:
    """A run that died, and so could mark no log."""

    names: tuple[str, ...]
    """What it was asked for."""
    reason: str
    """Names the run, so that nothing is marked twice for it."""
    began_ms: int

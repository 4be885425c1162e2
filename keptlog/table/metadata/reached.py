"""What is remembered of a log end that an ingest reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReachedEpoch:
    """Under which leader epoch a log end was reached; of no use once the log ends elsewhere."""

    end_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ReachedTime:
    """As of when a log end was all that its source had; of no use once the log ends elsewhere."""

    end_offset: int
    as_of_ms: int
    is_compacted: bool = False
    """Whether the source was compacted since, as far as it said so."""

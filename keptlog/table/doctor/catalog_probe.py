"""Whether a catalog does what keptlog's guarantees rest on: asked of the catalog itself, in tables made for it.

A catalog is believed for what it does, not for its name: there are some that accept two commits on one snapshot, and
lose the rows of the first. So each promise is tried, and answered by what was seen:

    kept             it was tried, and it held
    broken           it was tried, and this was seen
    not looked at    it could not be tried, and this is why: neither of the two

A probe is a function that gets a ``Scratch``, and returns what it saw; it raises ``PromiseBroken`` with what it saw
instead. What can't be reached is not looked at. Any other error of the catalog's client is what an append would get
too, so it breaks the promise.

One that hangs ends the looking: nobody waits for the others too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from keptlog.errors import CommitStateUnknown, InvalidConfig, StorageUnavailable
from keptlog.table.doctor.scratch import Scratch
from keptlog.table.waiting.patience import within
from keptlog.table.waiting.reach import OUT_OF_REACH, is_unsupported
from keptlog.table.waiting.reaching import one_line

PATIENCE_SECONDS = 120.0
"""For one probe."""
_NOT_LOOKED_AT: tuple[type[Exception], ...] = (StorageUnavailable, CommitStateUnknown, *OUT_OF_REACH)


class Answer(StrEnum):
    """What is known of a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_LOOKED_AT = "not looked at"


class PromiseBroken(Exception):  # it is what was seen, on its way into an answer
    """What a probe saw of a promise that is not kept."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A promise that a catalog must keep, and how it is tried."""

    name: str
    promise: str
    """What the catalog does, if it keeps it: a sentence without its full stop."""
    follows: str
    """What follows for topics if it does not."""
    look: Callable[[Scratch], str]
    loses: bool = False
    """Whether records or settings may get lost by it, so that no topic may be kept there."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came out."""

    probe: Probe
    answer: Answer
    seen: str


def require(holds: object, seen: str) -> None:
    """Go on if something holds.

    Raises:
        PromiseBroken: with what was seen.
    """
    if not holds:
        raise PromiseBroken(seen)


def probed(
    probes: Iterable[Probe], scratch: Scratch, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[ProbeResult]:
    """Try promises, one after the other."""
    hangs: str | None = None
    for probe in probes:
        if hangs:
            yield ProbeResult(probe, Answer.NOT_LOOKED_AT, f"not tried any more: {hangs} got no answer")
            continue
        result = within(lambda probe=probe: _answered(probe, scratch), patience_seconds)  # type: ignore[misc]
        if result is None:
            hangs = probe.name
            seen = f"no answer within {patience_seconds:.0f} s"
            result = ProbeResult(probe, Answer.NOT_LOOKED_AT, seen)
        yield result


def _answered(probe: Probe, scratch: Scratch) -> ProbeResult:
    try:
        return ProbeResult(probe, Answer.KEPT, probe.look(scratch))
    except PromiseBroken as broken:
        return ProbeResult(probe, Answer.BROKEN, " ".join(str(broken).split()))
    except InvalidConfig:
        raise
    except _NOT_LOOKED_AT as error:
        if is_unsupported(error):
            return ProbeResult(probe, Answer.BROKEN, f"the catalog says that it can't do it: {one_line(error)}")
        return ProbeResult(probe, Answer.NOT_LOOKED_AT, one_line(error))
    except Exception as error:  # noqa: BLE001  # whatever a catalog's client raises: an append would get it too
        return ProbeResult(probe, Answer.BROKEN, f"it ended with {one_line(error)}")

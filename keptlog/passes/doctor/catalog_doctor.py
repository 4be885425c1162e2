"""``keptlog doctor --catalog``: may topics be kept in this catalog, and if not, why not.

What is asked are promises, one by one (``keptlog.table.doctor.catalog_probe``), in namespaces made for it and taken
away afterwards. Then there are hints: what no guarantee rests on, but somebody pays for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from keptlog.errors import InvalidConfig
from keptlog.extras import missing_extra
from keptlog.progress import Progress, silent
from keptlog.table.doctor.catalog_probe import Answer, ProbeResult, probed
from keptlog.table.doctor.probe_commits import PROBES as COMMITS
from keptlog.table.doctor.probe_races import PROBES as RACES
from keptlog.table.doctor.probe_reading import PROBES as READING
from keptlog.table.doctor.probe_tables import PROBES as TABLES
from keptlog.table.doctor.scratch import (
    OpenCatalog,
    Scratch,
    is_not_made_yet,
    scratch_at,
    scratch_name,
    sweep,
    topics_folder,
)
from keptlog.table.waiting.reach import OUT_OF_REACH
from keptlog.table.waiting.reaching import one_line, reaching

PROBES = (*TABLES, *RACES, *COMMITS, *READING)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was found out about a catalog."""

    catalog: str
    """Its kind."""
    results: tuple[ProbeResult, ...]
    hints: tuple[str, ...] = ()
    """What to do, although nothing is wrong with the catalog."""
    swept: tuple[str, ...] = ()
    """Namespaces of earlier doctors that were killed: gone now."""
    left: tuple[str, ...] = ()
    """What could not be taken away, a line each."""

    @property
    def answer(self) -> Answer:
        """Of all promises together: one that is broken breaks it, and one that was not looked at leaves it open."""
        answers = {result.answer for result in self.results}
        return next((each for each in (Answer.BROKEN, Answer.NOT_LOOKED_AT) if each in answers), Answer.KEPT)

    @property
    def verdict(self) -> str:
        """What follows, in a sentence."""
        broken = [result.probe for result in self.results if result.answer is Answer.BROKEN]
        unseen = [result.probe.name for result in self.results if result.answer is Answer.NOT_LOOKED_AT]
        if any(probe.loses for probe in broken):
            names = ", ".join(probe.name for probe in broken if probe.loses)
            return f"this catalog loses or mixes up updates ({names}): keep no topics in it"
        if broken:
            return f"this catalog does not do all that keptlog needs: {', '.join(probe.name for probe in broken)}"
        if unseen:
            return f"nothing is known to be wrong with this catalog, but not all was looked at: {', '.join(unseen)}"
        return "this catalog does what keptlog's guarantees rest on"


@dataclass(frozen=True, slots=True)
class CatalogDoctor:
    """Looks at one catalog."""

    open_one: OpenCatalog
    """Opens it, each time anew."""
    new_id: Callable[[], str]
    sleep: Callable[[float], None]
    progress: Progress = silent

    def examine(self, now_ms: int) -> Certificate:
        """Sweep what others have left, try every promise, take everything away.

        Raises:
            InvalidConfig: there is no catalog yet, or nothing may be changed in it.
            StorageUnavailable: it can't be reached, so that nothing was looked at.
        """
        catalog = self.open_one()
        if is_not_made_yet(catalog):
            raise InvalidConfig("there is no catalog here yet: it is made with the first topic; then look at it")
        scratch = Scratch(catalog, self.open_one, scratch_name(now_ms, self.new_id()), self.new_id, self.sleep)
        with reaching("the catalog can't be looked at"):
            swept, left = sweep(catalog, scratch.files, now_ms)
            with scratch_at(scratch):
                results = tuple(self._told(probed(PROBES, scratch)))
                hints = tuple(_hints(scratch))
        return Certificate(type(catalog).__name__, results, hints, tuple(swept), (*left, *scratch.left))

    def _told(self, results: Iterator[ProbeResult]) -> Iterator[ProbeResult]:
        for result in results:
            self.progress(f"{result.probe.name}: {result.answer}")
            yield result


def _hints(scratch: Scratch) -> Sequence[str]:
    """What is said of the storage: whether it gives up uploads that nobody completes."""
    try:
        folder = topics_folder(scratch)
        why = scratch.files.why_uploads_stay(folder)
    except ModuleNotFoundError as error:
        return [f"whether open uploads are given up is not looked at: {missing_extra(error) or error}"]
    except OUT_OF_REACH as error:
        return [f"whether open uploads are given up is not looked at: {one_line(error)}"]
    return [why] if why else []

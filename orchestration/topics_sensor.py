"""The sensor that keeps the asset graph as the home is: it sees new, altered and dropped topics, and reloads.

Each tick looks as the other sensors do, and compares with what this process was loaded with (``Loaded``). Where nothing
has changed it only says that the state file still holds. Else it writes the file, and asks for a reload: the process
that loads next has this file to load from, and finds nothing changed. Where a reload was asked for and did not come, it
is asked for again after a minute, then two, up to an hour. One that came, and was overtaken by a newer change, is no
reason to wait.

Logs of new topics are cleaned before that, because the other sensors and all jobs work on the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

import dagster as dg

from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.backfills import with_needed
from keptlog.dagster.orchestration.reload import ask_for_reload
from keptlog.dagster.orchestration.seen import Seen, shown
from keptlog.dagster.orchestration.state_file import StateFile
from keptlog.errors import StorageUnavailable, first_line
from keptlog.foreign_json import json_value
from keptlog.log.given.past import is_past
from keptlog.log.uncleanable import Backoff
from keptlog.log.words.counted import counted, first_lines
from keptlog.log.words.iso_time import iso_time

TOPICS_SENSOR = "topics_sensor"
_PAUSES = Backoff(first_ms=60_000, longest_ms=3_600_000)
_TOLD = 3
"""Of topics that are shown for a backfill."""


@dataclass(frozen=True)
class Loaded:
    """What this process has loaded, and where the next one will look for it."""

    seen: Seen
    state: StateFile | None

    @cached_property
    def digest(self) -> str:
        """Tells one loading from another that shows something else."""
        return hashlib.sha256(self.seen.as_json().encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Asked:
    """How often in a row a reload was asked for, when last, and by what was loaded then; what the cursor says."""

    times: int = 0
    at_ms: int = 0
    loaded: str = ""

    @classmethod
    def of_cursor(cls, cursor: str | None) -> _Asked:
        try:
            told = cls(**json_value(cursor)) if cursor else cls()
            return cls(int(told.times), int(told.at_ms), str(told.loaded))
        except (ValueError, TypeError, OverflowError):
            # Of another keptlog, or set by hand. Dagster keeps it as long as ticks fail, so it must not fail one.
            return cls()

    @property
    def cursor(self) -> str:
        return json.dumps(asdict(self))

    def unanswered(self, loaded: Loaded, now_ms: int) -> _Asked:
        """What still waits for its reload: nothing if something else asked, or by a clock that was ahead."""
        return self if self.loaded == loaded.digest and is_past(self.at_ms, now_ms) else _Asked()

    @property
    def again_at_ms(self) -> int:
        """When it may be asked for again."""
        return self.at_ms + _PAUSES.after(self.times) if self.times else 0


def topics_sensor(automation: Automation, loaded: Loaded) -> dg.SensorDefinition:
    """The sensor of a home that keeps the asset graph up to date."""
    mount = automation.mount

    @dg.sensor(
        name=mount.name(TOPICS_SENSOR),
        description="Sees new, altered and dropped topics, and reloads the code location, so that its assets are those "
        "of the home.",
        minimum_interval_seconds=automation.seconds(TOPICS_SENSOR),
        default_status=automation.sensor_status(TOPICS_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock"),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        reason, asked = _tick(MountCall(mount, context), loaded)
        return dg.SensorResult(skip_reason=reason, cursor=asked.cursor)

    return sensor


def _tick(tick: Tick, loaded: Loaded) -> tuple[str, _Asked]:
    """What is told, and the cursor after it."""
    asked, now_ms = _Asked.of_cursor(tick.context.cursor), tick.now_ms()
    try:
        overview = tick.log_store.observer.look(now_ms)
        if not overview.locations:
            tick.log_store.require_begun()
    except StorageUnavailable as error:
        return f"the asset graph stays as it is: {first_line(error)}", asked
    if overview.behind:
        return "; ".join(["the asset graph stays as it is", *overview.behind_lines()]), asked
    there, needed = with_needed(tick, shown(overview, loaded.seen), loaded.seen)
    changes = loaded.seen.changes_to(there)
    unwritten = loaded.state.keep(there, now_ms) if loaded.state else None
    if unwritten:
        tick.context.log.warning("each loading asks the catalog, because %s", unwritten)
    if not changes:
        unread = f", and {len(there.unreadable)} that can't be read" if there.unreadable else ""
        but = "".join(f"; {each}" for each in _still_shown(needed))
        graph = "is kept as it is" if needed else "is as the home is"
        return f"the asset graph {graph}: {counted(len(there.topics), 'topic')}{unread}{but}", _Asked()
    changes = "; ".join([changes, *_still_shown(needed)])
    asked = asked.unanswered(loaded, now_ms)
    if now_ms < asked.again_at_ms:
        told = f"a reload was asked for at {iso_time(asked.at_ms)}; if it does not come, the code server was not "
        told += (
            f"started by `dagster code-server start`: restart it. It is asked again at {iso_time(asked.again_at_ms)}"
        )
        return f"{changes}; {told}", asked
    refused = ask_for_reload(tick.context.code_location_origin)
    return f"{changes}; {refused or 'a reload is asked for'}", _Asked(asked.times + 1, now_ms, loaded.digest)


def _still_shown(needed: Mapping[str, str]) -> list[str]:
    """Of a few topics, how they are shown that are not there as they were, and how long or why."""
    told = [f"{topic} is shown {how}" for topic, how in needed.items()]
    return first_lines(told, _TOLD)

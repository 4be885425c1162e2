"""The asset ``keptlog/health``: how the logs of a home stand, and which of them is worst.

The health sensor tells it every minute, from what the other sensors have seen. A report in full is a materialization: a
table of the worst logs, each with its reason and a link to its page, and the totals. It is told when the table has
changed, or after ``FULL_MS``. In between it is only the numbers, as an observation: the plots go on, and Dagster's
database does not fill with equal tables.

What could not be looked at is named, and is in no number: it is neither fine nor late. Where nothing could be looked
at, there are no numbers at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import shorten
from urllib.parse import quote

import dagster as dg

from keptlog.dagster.assets.markdown import (
    SHOWN_AT_ONCE,
    as_markdown,
    minute_of,
    name_cell,
    time_cell,
    to_the_minute,
    unbroken,
    without_folders,
    without_paths,
)
from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.assets.names import AssetKeys
from keptlog.dagster.assets.numbers import Metadata
from keptlog.log.assessment import Assessment
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig
from keptlog.log.told.conditions import Thresholds
from keptlog.log.told.explain import due_if_off, verdict_under
from keptlog.log.told.health import Totals, late_ms, totals_of, worst_of
from keptlog.log.words.counted import counted, first_lines
from keptlog.log.words.iso_time import has_date
from keptlog.log.words.units import duration

ROWS = 50
FULL_MS = 600_000
"""After so long a report is told in full, whether anything has changed or not."""
_AT_A_GLANCE = 5
_GLANCE_CHARACTERS = SHOWN_AT_ONCE - 50
_GLANCE_WHY = 240
_UNSEEN_TOLD = 50
_TOLD = 3
"""Of them, in the line that sums all up."""
_COLUMNS = ("log", "dirty ratio", "late", "deadline (UTC)", "next try (UTC)", "why")


@dataclass(frozen=True)
class Health:
    """What is known of a home at one time."""

    now_ms: int
    assessments: Sequence[Assessment] | None = ()
    """Null if nothing could be looked at."""
    hindered: Mapping[str, str] = field(default_factory=dict)
    """Due topic-partition to why it is not cleaned this moment."""
    next_tries: Mapping[str, int] = field(default_factory=dict)
    """Due topic-partition to when it is asked for again, where that is not now."""
    topics_unseen: int = 0
    unseen: Sequence[str] = ()
    """What was not looked at, and why, a line each."""
    consumer_lag: int | None = None
    """Offsets that are to be ingested; null where nothing is, or not all of it is known."""
    last_tick_age_ms: int | None = None
    """Of the cleaning sensor that is on and ticked longest ago; null if that is not known."""
    broker: BrokerConfig | None = None
    """Whose settings may keep all logs from being cleaned."""
    sensors: Sequence[tuple[str, str]] = ()
    """Name of a sensor, and whether it is on and when it ticked last."""
    clock: str | None = None
    """What is to be known of the clock, null if it is the wall's."""

    @cached_property
    def totals(self) -> Totals | None:
        return None if self.assessments is None else totals_of(self.assessments, self.now_ms)

    @cached_property
    def worst(self) -> list[Assessment]:
        return worst_of(self.assessments or (), self.now_ms, ROWS)

    @cached_property
    def digest(self) -> str:
        """A few characters that change whenever the table does, but for time that only passes."""
        hindered = self.hindered
        off = self.broker is not None and not self.broker.log_cleaner_enable
        rows = [(_state(each), hindered.get(str(each.log.topic_partition))) for each in self.worst]
        return hashlib.sha256(repr((rows, self.unseen, self.sensors_on, off)).encode()).hexdigest()[:16]

    @property
    def sensors_on(self) -> list[str]:
        return [name for name, state in self.sensors if not state.startswith("off")]

    def told(self) -> str:
        """All of it in one line."""
        return f"{self._told()}; {self.clock}" if self.clock else self._told()

    def _told(self) -> str:
        if self.totals is None:
            return f"nothing could be looked at: {'; '.join(self.unseen)}"
        totals = self.totals
        parts = [
            f"{counted(totals.logs, 'log')}, {totals.late} late, {totals.due} due, {totals.uncleanable} uncleanable"
        ]
        if self.broker and not self.broker.log_cleaner_enable:
            parts.append(CLEANER_DISABLED)
        if self.unseen:
            parts.append(f"not looked at: {'; '.join(first_lines(self.unseen, _TOLD))}")
        return "; ".join(parts)

    def row(self, keys: AssetKeys, each: Assessment) -> tuple[str, ...]:
        """One log in the table, under a link to its clean section."""
        late = late_ms(each, self.now_ms)
        return (
            self._link(keys, each),
            f"{each.cleanable_ratio:.2f}",
            f"**{unbroken(duration(late))}**" if late else "no",
            time_cell(each.deadline_ms, "none"),
            self._next_try(each),
            as_markdown(without_paths(self._why(each))),
        )

    def at_a_glance(self, keys: AssetKeys) -> str:
        """As many of the worst logs as a page shows without a click."""
        lines: list[str] = []
        for each in self.worst[:_AT_A_GLANCE]:
            late = late_ms(each, self.now_ms)
            deadline = f"**late by {duration(late)}**" if late else f"deadline {minute_of(each.deadline_ms, 'none')}"
            why = shorten(without_paths(to_the_minute(self._why(each))), _GLANCE_WHY, placeholder=" …")
            lines.append(f"* {self._link(keys, each)}, {deadline}: {as_markdown(why)}")
        while len(lines) > 1 and len("\n".join(lines)) > _GLANCE_CHARACTERS:
            lines.pop()
        return "\n".join(lines)

    def nearest_deadline(self, keys: AssetKeys) -> str:
        """The log that is late first, or has been for longest, and when."""
        found = [(each.deadline_ms, each) for each in self.assessments or () if each.deadline_ms is not None]
        if not found:
            return "none"
        deadline_ms, nearest = min(found, key=lambda pair: (pair[0], pair[1].log.topic_partition))
        return f"{self._link(keys, nearest)} {minute_of(deadline_ms, '')} UTC"

    def _link(self, keys: AssetKeys, each: Assessment) -> str:
        name = each.log.topic_partition
        up = "../" * (len(keys.health.path) - 1)
        path = "/".join(quote(part, safe="") for part in keys.clean(name.topic).path)
        return f"[{as_markdown(name_cell(name))}]({up}{path})"

    def _next_try(self, each: Assessment) -> str:
        if due_if_off(each, self.broker):
            return "cleaner off" if each.log.config.is_compacted else "never"
        if each.trigger:
            return time_cell(self.next_tries.get(str(each.log.topic_partition)), "now")
        until_ms, by_records = each.left_alone_until_ms, "with new records"
        if until_ms is not None:
            # Its clean failed: until then what is new is left alone too.
            by_records = f"{by_records} from {time_cell(until_ms, '')} on" if has_date(until_ms) else "never"
        return time_cell(each.due_ms, by_records)

    def _why(self, each: Assessment) -> str:
        name, mark = str(each.log.topic_partition), each.log.uncleanable
        verdict = verdict_under(each, self.broker).removeprefix("left alone: ")
        why = self.hindered.get(name, verdict)
        # While it is tried again, people still want to know what it failed with.
        told = mark.told(self.now_ms, due_if_off(each, self.broker)) if mark else ""
        return f"{told}; {why}" if mark and mark.reason not in why else why


def health_spec(mount: Mount) -> dg.AssetSpec:
    """The asset; nothing here makes it, the health sensor tells it."""
    return dg.AssetSpec(
        mount.keys.health,
        group_name=mount.group,
        description="How the logs stand: which are late, due or uncleanable, why each is not cleaned yet, and when it "
        "will be. The sensor tells it every minute, from what the other sensors have seen.\n\nA log is late from its "
        "deadline on. Its maximum lag makes it due at the same time, so it is late until its clean has ended. `notify` "
        f"sends a message about a log that is late for {duration(Thresholds().late_ms)}, or for `KEPTLOG_NOTIFY_LATE`.",
        skippable=True,
    )


def health_event(keys: AssetKeys, health: Health, *, in_full: bool) -> dg.AssetMaterialization | dg.AssetObservation:
    """A report, in full or in numbers."""
    numbers = _numbers(health)
    if not in_full:
        return dg.AssetObservation(keys.health, metadata=numbers)
    rows = [health.row(keys, each) for each in health.worst]
    unseen = [as_markdown(without_folders(line)) for line in first_lines(health.unseen, _UNSEEN_TOLD)]
    told: Metadata = {
        "not_looked_at": dg.MetadataValue.md("\n".join(f"* {line}" for line in unseen) if unseen else "nothing"),
    }
    if rows:
        told["nearest_deadline"] = dg.MetadataValue.md(health.nearest_deadline(keys))
        told["worst"] = dg.MetadataValue.md(health.at_a_glance(keys))
        told["worst_logs"] = dg.MetadataValue.md(_table(_COLUMNS, rows))
    if health.sensors:
        told["sensors"] = dg.MetadataValue.md("\n".join(f"* {name}: {state}" for name, state in health.sensors))
    return dg.AssetMaterialization(
        keys.health, description=without_folders(health.told()), metadata={**told, **numbers}
    )


def _numbers(health: Health) -> Metadata:
    numbers: Metadata = {}
    if health.totals:
        totals = health.totals
        topics = {each.log.topic_partition.topic for each in health.assessments or ()}
        numbers = {
            "topics": len(topics),
            "logs": totals.logs,
            "logs_late": totals.late,
            "logs_due": totals.due,
            "logs_uncleanable": totals.uncleanable,
            "largest_late_ms": totals.largest_late_ms,
            "cleanable_bytes": totals.cleanable_bytes,
            "waiting_bytes": totals.waiting_bytes,
            "topics_not_looked_at": health.topics_unseen,
        }
    if health.consumer_lag is not None:
        numbers["consumer_lag"] = health.consumer_lag
    if health.last_tick_age_ms is not None:
        numbers["last_tick_age_ms"] = health.last_tick_age_ms
    return numbers


def _state(each: Assessment) -> tuple[object, ...]:
    due_ms = None if each.trigger else each.due_ms
    ratio = f"{each.cleanable_ratio:.1f}"
    return str(each.log.topic_partition), each.trigger, each.deadline_ms, due_ms, each.log.uncleanable, ratio


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))

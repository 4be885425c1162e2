"""What the asset graph shows of a home, as a value: seen through the observer, written to JSON, compared.

It goes two ways. A code server hands it to its runs, and a sensor keeps it in a file, from which the next code server
loads (``loading``). Both times by the same JSON, which has a version: what another keptlog has written counts as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from keptlog.dagster.assets.asset_topic import AssetSource, AssetTopic, shown_settings
from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.foreign_json import json_value
from keptlog.log.words.counted import counted, some_of
from keptlog.passes.observer import Overview
from keptlog.table.metadata.logs import table_location
from keptlog.table.metadata.state import read_source_identity

_VERSION = 2
"""Of the JSON; another one when a field changes."""
_TOLD = 3


@dataclass(frozen=True)
class Seen:
    """What the asset graph shows of a home."""

    topics: tuple[AssetTopic, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Topic to why it can't be read."""
    unread: int = 0
    """How many topics there was no time for."""
    unreachable: str | None = None
    """Why nothing of the home can be read; ``topics`` are those that were there before, if that is known."""

    def changes_to(self, now: Seen) -> str | None:
        """What differs in ``now``, in words; null if both are shown alike. Why a topic can't be read may vary."""
        before, after = ({topic.name: topic for topic in seen.topics} for seen in (self, now))
        names = {
            "new": sorted(after.keys() - before.keys() - self.unreadable.keys()),
            "dropped": sorted(before.keys() - after.keys() - now.unreadable.keys()),
            "altered": sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
            "unreadable": sorted(now.unreadable.keys() - self.unreadable.keys()),
            "readable or gone": sorted(self.unreadable.keys() - now.unreadable.keys()),
        }
        told = [f"{what}: {some_of(topics, _TOLD)}" for what, topics in names.items() if topics]
        if self.unread != now.unread:
            told.append(f"{counted(self.unread, 'topic')} could not be read in time then")
        if bool(self.unreachable) != bool(now.unreachable):
            told.append("the home can be read again")
        return "; ".join(told) or None

    def as_json(self) -> str:
        """All of it as text."""
        return json.dumps({"version": _VERSION, **asdict(self)})

    @classmethod
    def of_json(cls, text: Any) -> Seen | None:
        """What ``as_json`` has written; null if it was of another version, or is something else.

        Raises:
            ValueError, LookupError, TypeError: it is damaged.
        """
        stored = json_value(text) if isinstance(text, str) else {}
        if stored.pop("version", None) != _VERSION:
            return None
        return cls(tuple(_topic(each) for each in stored.pop("topics")), **stored)


def shown(overview: Overview, before: Seen | None = None) -> Seen:
    """What is to be shown of an overview. A topic that an outage hides is shown as it was ``before``."""
    known = {topic.name: topic for topic in before.topics} if before else {}
    topics: list[AssetTopic] = []
    unreadable: dict[str, str] = {}
    for name, error in overview.unreadable.items():
        if isinstance(error, StorageUnavailable) and name in known:
            topics.append(known[name])
        else:
            unreadable[name] = str(error)
    partitions: dict[str, int] = {}
    for log in overview.logs:
        partitions[log.topic_partition.topic] = log.topic_partition.partition + 1
    configs = {log.topic_partition.topic: log.config for log in overview.logs}
    for name, config in configs.items():
        try:
            source = read_source_identity(name, overview.sources.get(name))
        except KeptlogError as error:
            unreadable[name] = str(error)
            continue
        asked = AssetSource(source.topic, source.bootstrap) if source and source.bootstrap else None
        location, about = table_location(overview.locations[name]), overview.about[name]
        settings = shown_settings(config)
        described = about.description or ""
        topics.append(AssetTopic(name, partitions[name], location, settings, asked, described, about.owners))
    topics.sort(key=lambda topic: topic.name)
    return Seen(tuple(topics), dict(sorted(unreadable.items())), overview.behind)


def as_before(seen: Seen, why: str) -> Seen:
    """The same, of a home that can't be read now."""
    return replace(seen, unreachable=why)


def _topic(stored: dict[str, Any]) -> AssetTopic:
    source = AssetSource(**stored["source"]) if stored["source"] else None
    return AssetTopic(**{**stored, "source": source, "owners": tuple(stored["owners"])})

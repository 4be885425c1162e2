"""The asset graph of a home: first what is seen of its topics, then the assets that show it.

    code server    looks, through the observer that its sensors use too  ──>  Seen  ──>  assets
    run            is handed what its code server has seen               ──>  Seen  ──>  assets

A run asks neither catalog nor storage before it begins, whatever the number of topics: what was seen is part of the
plan that Dagster hands it. Where it was not handed anything, or by another version of keptlog, it looks by itself.

A home that can't be reached must not break loading, nor must a topic that can't be read: an asset says why. One look
reads for a bounded time, and a home that nobody has looked at yet may take several; when loading has taken
``LOADING_MS``, the topics that are missing are counted in an asset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import dagster as dg
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType

from keptlog.dagster.assets.asset_topic import AssetSource, AssetTopic, shown_settings
from keptlog.dagster.assets.erasures import erasures_asset
from keptlog.dagster.assets.health import health_spec
from keptlog.dagster.assets.markdown import as_markdown
from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.assets.names import names_of
from keptlog.dagster.assets.sections import clean_section, dirty_section, ingested_section, source_section
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError
from keptlog.home import monotonic_ms
from keptlog.log.counted import counted
from keptlog.passes.observer import Overview
from keptlog.table.logs import table_location
from keptlog.table.state import read_source_identity

LOADING_MS = 120_000
"""A code server may take three minutes to start, as Dagster is delivered."""
_VERSION = 2
"""Of what is handed to runs; another one when a field of it changes."""

Assets = list[dg.AssetSpec | dg.AssetsDefinition]


@dataclass(frozen=True)
class Seen:
    """What the asset graph shows of a home."""

    topics: tuple[AssetTopic, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Topic to why it can't be read."""
    unread: int = 0
    """How many topics there was no time for."""
    unreachable: str | None = None
    """Why nothing of the home can be read."""


def seen_topics(log_store: LogStoreResource) -> Seen:
    """What is to be shown: in a run what its code server has seen, else what is there now."""
    context = DefinitionsLoadContext.get()
    name = f"keptlog {log_store.identity}"
    seen = None
    if context.load_type is DefinitionsLoadType.RECONSTRUCTION:
        seen = _from_json(context.reconstruction_metadata.get(name))
    seen = seen or _looked(log_store)
    context.add_to_pending_reconstruction_metadata(name, json.dumps({"version": _VERSION, **asdict(seen)}))
    return seen


def topic_assets(mount: Mount, seen: Seen, home: object) -> Assets:
    """The sections of every topic and their sources, or one asset that says why there are none."""
    if seen.unreachable:
        why = as_markdown(seen.unreachable)
        return [_notice(mount, ["home_unreachable"], f"{home} can't be read: {why}. Reload when it is back.")]
    notices: Assets = [
        _notice(mount, [topic, "unreadable"], f"{topic} can't be read: {as_markdown(why)}. Reload when that is mended.")
        for topic, why in seen.unreadable.items()
    ]
    if seen.unread:
        told = f"{counted(seen.unread, 'topic')} could not be read in time. Reload to see the rest; sensors clean them."
        notices.append(_notice(mount, ["topics_to_be_read"], told))
    if not seen.topics and not notices:
        create = "`keptlog topic create TOPIC --config cleanup.policy=compact`"
        return [_notice(mount, ["no_topics_yet"], f"{home} has no topics yet. Create one with {create}, then reload.")]
    names = names_of(topic.name for topic in seen.topics)
    groups = mount.groups(names)
    topics = [replace(topic, group=groups[topic.name]) for topic in seen.topics]
    return [
        *notices,
        *(each for topic in topics for each in _assets_of(mount, topic, names[topic.name])),
        erasures_asset(mount),
        health_spec(mount),
    ]


def _looked(log_store: LogStoreResource) -> Seen:
    """What is there now: what the sensors of this process will need anyway."""
    until_ms = monotonic_ms() + LOADING_MS
    try:
        overview = log_store.observer.look(ClockResource().read_ms())
        while overview.behind and monotonic_ms() < until_ms:
            overview = log_store.observer.look(ClockResource().read_ms())
    except (KeptlogError, OSError) as error:
        return Seen(unreachable=str(error))
    return _shown(overview)


def _shown(overview: Overview) -> Seen:
    topics: list[AssetTopic] = []
    unreadable = {topic: str(error) for topic, error in overview.unreadable.items()}
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
        location = table_location(overview.locations[name])
        about = overview.about[name]
        topics.append(
            AssetTopic(
                name,
                partitions[name],
                location,
                shown_settings(config),
                asked,
                about.description or "",
                about.owners,
            )
        )
    return Seen(tuple(topics), dict(sorted(unreadable.items())), overview.behind)


def _from_json(text: Any) -> Seen | None:
    """What a code server has seen; null if it was of another version."""
    stored = json.loads(text) if isinstance(text, str) else {}
    if stored.pop("version", None) != _VERSION:
        return None
    topics = tuple(
        AssetTopic(
            **{
                **each,
                "source": AssetSource(**each["source"]) if each["source"] else None,
                "owners": tuple(each["owners"]),
            }
        )
        for each in stored.pop("topics")
    )
    return Seen(topics, **stored)


def _assets_of(mount: Mount, topic: AssetTopic, name: str) -> Assets:
    clean = clean_section(mount, topic, name)
    if topic.source is None:
        return [dirty_section(mount, topic), clean]
    source = topic.source
    return [source_section(mount, topic, source), ingested_section(mount, topic, name, source), clean]


def _notice(mount: Mount, path: list[str], description: str) -> dg.AssetSpec:
    return dg.AssetSpec(mount.keys.notice(*path), description=description, group_name=mount.group)

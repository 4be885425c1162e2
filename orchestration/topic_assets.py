"""The asset graph of a home: what is seen of its topics (``loading``), as assets.

A home that can't be reached must not break loading, nor must a topic that can't be read: an asset says why, and stands
beside the topics that are known from before.

A code server loads a function of definitions twice, one after the other: to learn what runs are to be handed, and to
serve it. What is the same both times is made once: nearly all of the time of a large home's loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.erasures import erasures_asset
from keptlog.dagster.assets.health import health_spec
from keptlog.dagster.assets.markdown import as_markdown
from keptlog.dagster.assets.mount import Mount, partitions_of
from keptlog.dagster.assets.names import names_of
from keptlog.dagster.assets.sections import clean_section, dirty_section, ingested_section, source_section
from keptlog.dagster.assets.translator import Section
from keptlog.dagster.orchestration.seen import Seen
from keptlog.errors import first_line
from keptlog.log.words.advice import CREATE_TOPIC
from keptlog.log.words.counted import counted

_SOON = "What has changed is shown after a minute, or when you reload the definitions."

Assets = list[dg.AssetSpec | dg.AssetsDefinition]

_made: dict[tuple[str, str], tuple[Mount, Seen, Assets]] = {}
"""By home and name prefix what was made last, and of what. Assets are values: several definitions may have them."""


def topic_assets(mount: Mount, seen: Seen, home: str) -> Assets:
    """The sections of every topic and their sources, or one asset that says why there are none.

    The second time in a row that they are asked for, they are those of the first time.
    """
    place = (home, mount.name_prefix)
    before = _made.get(place)
    if before is None or before[:2] != (mount, seen):
        before = _made[place] = (mount, seen, _assets(mount, seen, home))
    return list(before[2])


def _assets(mount: Mount, seen: Seen, home: str) -> Assets:
    notices: Assets = [
        _notice(mount, [topic, "unreadable"], f"{topic} can't be read: {as_markdown(why)}. {_SOON}")
        for topic, why in seen.unreadable.items()
    ]
    if seen.unreachable:
        why = as_markdown(seen.unreachable)
        told = f"{home} can't be read: {why}. {_SOON}"
        notices.append(_notice(mount, ["home_unreachable"], told))
        if not seen.topics:
            return notices
    if seen.unread:
        told = f"{counted(seen.unread, 'topic')} could not be read in time. Reload to see the rest; sensors clean them."
        notices.append(_notice(mount, ["topics_to_be_read"], told))
    if not seen.topics and not notices:
        lost = "If it had some, its disk is not mounted, or its catalog is another one."
        return [
            _notice(mount, ["no_topics_yet"], f"{home} has no topics. Create one with `{CREATE_TOPIC}`. {lost} {_SOON}")
        ]
    unfit = _unfit(mount, seen.topics)
    notices += [
        _notice(mount, [name, "no_assets"], f"{name} has no assets, and is looked after all the same: {reason}")
        for name, reason in unfit.items()
    ]
    names = names_of([topic.name for topic in seen.topics if topic.name not in unfit], mount.name_prefix)
    groups = mount.groups(names)
    topics = [replace(topic, group=groups[topic.name]) for topic in seen.topics if topic.name in names]
    return [
        *notices,
        *(each for topic in topics for each in _assets_of(mount, topic, names[topic.name])),
        erasures_asset(mount),
        health_spec(mount),
    ]


def _unfit(mount: Mount, topics: Sequence[AssetTopic]) -> dict[str, str]:
    """Topics that get no assets, and why: a catalog takes names that Dagster, or the project's translator, does not.

    What is wrong with the translator, and not with a name, it is for all of them: then it is raised.
    """
    unfit: dict[str, str] = {}
    taken: dict[dg.AssetKey, str] = {}
    unnamed: list[Exception] = []
    for topic in topics:
        try:
            partitions_of(topic)
        except dg.DagsterInvalidDefinitionError as error:
            unfit[topic.name] = as_markdown(first_line(error))
            continue
        sections = [each for each in Section if topic.source or each is not Section.SOURCE]
        try:
            keys = [mount.keys.translated(topic.name, each) for each in sections]
        except Exception as error:  # noqa: BLE001  # it is the project's own
            unnamed.append(error)
            unfit[topic.name] = f"the translator raises {type(error).__name__} of its name"
            continue
        other = next((taken[key] for key in keys if key in taken), None)
        if not all(map(mount.keys.can_be_depended_on, keys)):
            unfit[topic.name] = "no asset can depend on one of that name: Dagster takes letters, digits, '.', '_', '-'"
        elif other:
            unfit[topic.name] = f"the translator gives it an asset key of {other}"
        else:
            taken |= dict.fromkeys(keys, topic.name)
    if unnamed and len(unnamed) == len(topics):
        raise unnamed[0]
    return unfit


def _assets_of(mount: Mount, topic: AssetTopic, name: str) -> Assets:
    clean = clean_section(mount, topic, name)
    if topic.source is None:
        return [dirty_section(mount, topic), clean]
    source = topic.source
    return [source_section(mount, topic, source), ingested_section(mount, topic, name, source), clean]


def _notice(mount: Mount, path: list[str], description: str) -> dg.AssetSpec:
    return dg.AssetSpec(mount.keys.notice(*path), description=description, group_name=mount.group)

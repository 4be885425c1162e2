"""How commands tell what holds bytes that are not live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from keptlog.cli.output import tell_wrong
from keptlog.log.broker import purge_interval_ms
from keptlog.log.holder import Holder, Holdings, Terms
from keptlog.settings import home_path
from keptlog.spark.local_folders import left_folders
from keptlog.table.cache import TopicCache

if TYPE_CHECKING:
    from keptlog.passes.observer import Overview
    from keptlog.passes.standings import Standings
    from keptlog.table.unopened import UnopenedStore


def all_holders(seen: Overview | Standings) -> list[Holder]:
    """Those that the tables of some topics tell of, by topic."""
    return [each for holdings in seen.holdings.values() for each in holdings.holders(seen.now_ms)]


def late_here(broker_settings: Mapping[str, str], now_ms: int) -> list[Holder]:
    """What Sparks that are gone have left on this machine, past its deadline."""
    return Holdings("", Terms(0, purge_interval_ms(broker_settings)), tuple(left_folders())).late(now_ms)


def held_here(store: UnopenedStore) -> Holdings:
    """What lies on this machine and may be of any topic: folders of Sparks that are gone, what looks remembered."""
    held = (*left_folders(), *TopicCache(home_path()).outdated(store.metadata_locations()))
    return Holdings("", Terms(0, purge_interval_ms(store.broker_settings)), held)


def holders_json(holders: Iterable[Holder]) -> list[dict[str, object]]:
    """Each with its numbers, and in a line."""
    return [_row(each) for each in holders]


def _row(holder: Holder) -> dict[str, object]:
    row = asdict(holder)
    partition = row.pop("partition")
    row["topic_partition"] = None if partition is None else f"{holder.topic}-{partition}"
    return row | {"is_late": holder.is_late, "told": str(holder)}


def tell_late(holders: Iterable[Holder]) -> None:
    """One line on stderr for each that is past its deadline."""
    for each in holders:
        if each.is_late:
            tell_wrong(str(each))

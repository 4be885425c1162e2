"""How commands tell what holds bytes that are not live."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from keptlog.cli.output import tell_wrong
from keptlog.log.holder import Holder

if TYPE_CHECKING:
    from keptlog.passes.observer import Overview
    from keptlog.passes.standings import Standings


def all_holders(seen: Overview | Standings) -> list[Holder]:
    """Those that the tables of some topics tell of, by topic."""
    return [each for holdings in seen.holdings.values() for each in holdings.holders(seen.now_ms)]


def holders_json(holders: Iterable[Holder]) -> list[dict[str, object]]:
    """Each with its numbers, and in a line."""
    return [_row(each) for each in holders]


def _row(holder: Holder) -> dict[str, object]:
    row = asdict(holder)
    del row["is_purge_refused"]  # the remedy says it
    partition = row.pop("partition")
    row["topic_partition"] = None if partition is None else f"{holder.topic}-{partition}"
    return row | {"is_late": holder.is_late, "told": str(holder)}


def tell_late(holders: Iterable[Holder]) -> None:
    """One line on stderr for each that is past its deadline."""
    for each in holders:
        if each.is_late:
            tell_wrong(str(each))

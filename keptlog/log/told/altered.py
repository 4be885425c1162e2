"""What people easily overlook when a topic's settings change: which records go from then on that stayed before.

    before              after                     told
    compact             delete, 7 days            it is not compacted any more; what is older than 7 days will go
    delete, 7 days      delete, 1 day             what is older than 1 day will go
    delete              compact                   only the latest record of each key stays, and none without a key
    delete, 7 days      compact,delete, 7 days    the same
    compact             compact, by timestamp     another record of a key is the latest, also where that is deleted
    not readable        delete, 7 days            all that holds after it: nobody knows what held before

Nothing of it needs a look at the logs, so a log that can't be read costs nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from keptlog.log.config import SETTINGS, TopicConfig
from keptlog.log.setting import Origin, Resolved, as_text, resolve
from keptlog.log.words.units import in_words

_POLICY = "cleanup.policy"


def what_altering_does(
    before: TopicConfig | None, after: TopicConfig, *, are_erasures_open: bool = True
) -> tuple[str, ...]:
    """What to tell whoever changes ``before`` into ``after``; null if what is there can't be resolved.

    ``are_erasures_open`` is whether one may wait for a clean of the topic.
    """
    was_compacted = before is None or before.is_compacted
    told = []
    if was_compacted and not after.is_compacted:
        told.append(f"{_POLICY} is {after.policy_text} from now on: it is not compacted any more")
    if after.is_compacted:
        told += _by_compaction(before, after, are_erasures_open=are_erasures_open)
    also = ", the latest records of their keys too" if was_compacted or after.is_compacted else ""
    if _is_tighter(_time_limit(before), limit_ms := _time_limit(after)):
        limit = in_words("retention.ms", limit_ms)
        told.append(f"segments with nothing younger than retention.ms={limit} will be deleted{also}")
    if _is_tighter(_size_limit(before), limit_bytes := _size_limit(after)):
        limit = in_words("retention.bytes", limit_bytes)
        told.append(f"the oldest segments above retention.bytes={limit} will be deleted{also}")
    return tuple(told)


def _by_compaction(before: TopicConfig | None, after: TopicConfig, *, are_erasures_open: bool) -> Sequence[str]:
    if before is None or not before.is_compacted:
        what = "of each key only the latest record stays, and records without a key are deleted"
        return (f"{_POLICY} is {after.policy_text} from now on: {what}",)
    if before.strategy == after.strategy:
        return ()
    header = f" {after.strategy.header}" if after.strategy.kind.needs_header else ""
    by_another = f"the latest record of a key is the latest by {after.strategy.kind}{header} from now on"
    if not are_erasures_open:
        return (by_another,)
    return (
        by_another,
        "a tombstone that no clean has passed yet may lose by that, so that its key is back: ask again, with another "
        "id, for the keys of open erasures that wait for a clean (keptlog erasure list)",
    )


def in_force(config: TopicConfig, names: Collection[str]) -> dict[str, tuple[str, str]]:
    """Of settings that a topic does not set: the value that counts, and where it comes from (``the default``)."""
    found = (each for each in config.resolved if each.setting.name in names and each.origin is not Origin.TOPIC)
    return {each.setting.name: _told(each) for each in found}


def fallen_back(names: Collection[str], broker_settings: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The same of settings that a topic sets no more: what was stored with it goes too, the broker decides.

    Raises:
        InvalidConfig: the broker has a value for one that it can't have.
    """
    settings = (each for each in SETTINGS if each.name in names)
    return {each.name: _told(resolve(each, {}, broker_settings)) for each in settings}


def _told(resolved: Resolved) -> tuple[str, str]:
    return as_text(resolved.value) or "empty", _whence(resolved)


def _whence(resolved: Resolved) -> str:
    if resolved.origin is Origin.DEFAULT:
        return "the default"
    if resolved.origin is Origin.STORED:
        return "stored with the topic"
    return f"of the broker setting {resolved.origin_name}"


def _time_limit(config: TopicConfig | None) -> int | None:
    return _limit(config, "retention.ms", config.retention_ms) if config else None


def _size_limit(config: TopicConfig | None) -> int | None:
    return _limit(config, "retention.bytes", config.retention_bytes) if config else None


def _limit(config: TopicConfig, name: str, value: int) -> int | None:
    """Null for none: also where retention leaves the log alone, because the settings are only this machine's."""
    is_known = not {_POLICY, name} & {*config.unsettled}
    return value if config.has_retention and is_known and value >= 0 else None


def _is_tighter(before: int | None, after: int | None) -> bool:
    return after is not None and (before is None or after < before)

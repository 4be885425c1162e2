"""Kafka's settings that mean nothing here, or not with any number, and what Kafka takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from keptlog.errors import InvalidConfig
from keptlog.log.setting import Setting

_INT_MAX = 2**31 - 1
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_FLAGS = (
    *("preallocate", "log.preallocate", "unclean.leader.election.enable"),
    *("remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"),
)
_LONGS = {
    "flush.messages": 1,
    "log.flush.interval.messages": 1,
    "flush.ms": 0,
    "segment.jitter.ms": 0,
    "local.retention.ms": -2,
    "local.retention.bytes": -2,
}
_INTS = {
    "segment.index.bytes": 4,
    "log.index.size.max.bytes": 4,
    "min.insync.replicas": 1,
    "index.interval.bytes": 0,
    "log.index.interval.bytes": 0,
}
_LEVELS = {
    "compression.gzip.level": (-1, 9),
    "compression.lz4.level": (1, 17),
    "compression.zstd.level": (-131_072, 22),
}
OF_ANY_NUMBER = ("log.cleaner.io.buffer.load.factor", "log.cleaner.io.max.bytes.per.second")
"""Kafka takes any number for them, also one with which no key fits into its map, or nothing may be read."""
_ACCEPTED = [
    *(Setting(name, 0.0, "") for name in OF_ANY_NUMBER),
    Setting("compression.type", "producer", "", choices=_CODECS),
    *(Setting(name, default=False, doc="") for name in _FLAGS),
    *(Setting(name, 0, "", minimum=minimum) for name, minimum in _LONGS.items()),
    *(Setting(name, 0, "", minimum=minimum, maximum=_INT_MAX) for name, minimum in _INTS.items()),
    *(Setting(name, 1, "", minimum=low, maximum=high) for name, (low, high) in _LEVELS.items()),
]
_NO_LEVEL = {"compression.gzip.level": 0}
"""Below the least is -1, but not what lies between."""


def are_kafkas(settings: Mapping[str, str]) -> bool:
    """Whether Kafka takes the values of those that mean nothing here; true of one whose values are not known."""
    for setting in _ACCEPTED:
        if setting.name not in settings:
            continue
        try:
            value = setting.parse(settings[setting.name])
        except InvalidConfig:
            return False
        if value == _NO_LEVEL.get(setting.name):
            return False
    return True


def are_judged(names: Collection[str]) -> bool:
    """Whether all that Kafka says of them is told by ``are_kafkas``; it compares those of tiers with others."""
    return set(names) <= {each.name for each in _ACCEPTED if not each.name.startswith(("local.", "remote."))}

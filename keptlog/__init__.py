"""keptlog: Kafka's log compaction for keyed changelog topics on a data lake.

    import keptlog

    home = keptlog.open_home("changelogs")
    home.create_topic("users", partitions=4, config={"cleanup.policy": "compact"})
    home.append("users", [keptlog.NewRecord(b"ada", b"1", timestamp_ms)])
    home.clean()
    state = {record.key: record.value for _, record in home.read("users", latest=True)}

What stands here is what programs may rely on; docs/library.md tells it at length. Everything else is keptlog's inside:
start with ARCHITECTURE.md; the rules are in ``keptlog.log``, the words in CONTEXT.md.

Names are loaded when they are first used: ``import keptlog`` by itself imports nothing of it, which the command and the
workers of Spark are glad of.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keptlog.errors import (
        CommitStateUnknown,
        InvalidConfig,
        InvalidRecord,
        InvariantViolated,
        KeptlogError,
        LogCorrupt,
        StalePlan,
        StorageUnavailable,
        TombstonesMissed,
        UnknownTopic,
        UnsupportedFormat,
    )
    from keptlog.home import Home, open_home
    from keptlog.log.record import NewRecord, Record
    from keptlog.passes.erasures.erasure_request import ErasureRequest

__version__ = "0.1.0"

__all__ = [
    "CommitStateUnknown",
    "ErasureRequest",
    "Home",
    "InvalidConfig",
    "InvalidRecord",
    "InvariantViolated",
    "KeptlogError",
    "LogCorrupt",
    "NewRecord",
    "Record",
    "StalePlan",
    "StorageUnavailable",
    "TombstonesMissed",
    "UnknownTopic",
    "UnsupportedFormat",
    "__version__",
    "open_home",
]

_MODULES = {
    "ErasureRequest": "keptlog.passes.erasures.erasure_request",
    "Home": "keptlog.home",
    "NewRecord": "keptlog.log.record",
    "Record": "keptlog.log.record",
    "open_home": "keptlog.home",
}
"""Where what is no error is defined."""

# Who runs keptlog says where its log lines go; without that they go nowhere, not to stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> object:
    """A name of ``__all__``, from where it is defined."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_MODULES.get(name, "keptlog.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""How long what was waited for in vain is left alone, by whoever comes by again and again."""

from __future__ import annotations

from keptlog.errors import Action, KeptlogError, StorageUnavailable

TRIED_AGAIN_MS = 30_000
"""A storage that was waited for in vain is tried again after as long; a topic's, also once the topic has changed."""
_WAITED_MS = 500
"""Who fails sooner keeps no look waiting."""


def rests_until_ms(error: KeptlogError, began_ms: int, ended_ms: int) -> int | None:
    """Until when what was waited for in vain is left alone; null if it took no time, or does not change by itself."""
    is_outage = isinstance(error, StorageUnavailable) and error.action is Action.RETRY
    return ended_ms + TRIED_AGAIN_MS if is_outage and ended_ms - began_ms >= _WAITED_MS else None

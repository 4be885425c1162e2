"""Until when files may have a deleted key: where records have versions, it is remembered (``keptlog.log.watermark``).

    tombstone goes    watermark ends                        its file was replaced         file goes
         |-- keptlog.watermark.retention.ms --|  (by a purge, or a clean of any key)  |-- grace of orphans --|

A tombstone of now leaves a watermark if the topic is set so. What a file that is there has stays, however the topic is
set by now: each watermark has its own end, and goes with it.

Of a topic one knows whether a log has a file of watermarks, and not whose they are. So this is told of keys that may
be in one. A drop ``here`` takes the watermarks of its keys with it, and only the file that it has replaced is left.
"""

from __future__ import annotations

from keptlog.log.config import TopicConfig
from keptlog.log.erasures.erasure import ErasureWay
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.log.segment import Log


def watermarks_ms(config: TopicConfig) -> int:
    """How long the watermark of a key that is deleted now, which holds the key, outlives its tombstone."""
    return config.keptlog_watermark_retention_ms if config.strategy.has_versions else 0


def swept_ms(config: TopicConfig) -> int:
    """How much longer than a segment the file with such a watermark may stay once it is replaced."""
    return _grace_ms(config) if config.strategy.has_versions else 0


def watermarks_end_ms(log: Log, deleted_ms: int) -> int:
    """When the last watermark ends of keys whose tombstones had gone by then; 0 if the log has no watermarks."""
    return deleted_ms + log.config.keptlog_watermark_retention_ms if log.watermarks_path else 0


def forgotten_ms(log: Log, way: ErasureWay, now_ms: int, stored_ms: int = 0) -> int:
    """When no file of this log has a key any more that is deleted by now, at the latest; 0 if none may have one now.

    ``stored_ms`` is when the last watermark of its file ends, which may have been made under a longer retention.
    """
    if not log.watermarks_path:
        return 0
    ends_ms = now_ms if way is ErasureWay.HERE else max(watermarks_end_ms(log, now_ms), stored_ms)
    return ends_ms + log.config.file_delete_delay_ms + _grace_ms(log.config)


def _grace_ms(config: TopicConfig) -> int:
    """A file of watermarks goes as orphans do."""
    return max(ORPHAN_GRACE_MS - config.file_delete_delay_ms, 0)

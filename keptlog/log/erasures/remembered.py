"""Until when files may have a deleted key: where records have versions, it is remembered (``keptlog.log.watermark``).

    tombstone goes    watermark ends                        its file was replaced         file goes
         |-- keptlog.watermark.retention.ms --|  (by a purge, or a clean of any key)  |-- grace of orphans --|

Of a topic one knows whether a log has a file of watermarks, and not whose they are. So this is told of keys that may
be in one. A drop ``here`` takes the watermarks of its keys with it, and only the file that it has replaced is left.
"""

from __future__ import annotations

from keptlog.log.config import TopicConfig
from keptlog.log.erasures.erasure import ErasureWay
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.log.segment import Log


def watermarks_ms(config: TopicConfig) -> int:
    """How long the watermark of a deleted key, which holds the key, outlives its tombstone."""
    return config.keptlog_watermark_retention_ms if config.strategy.has_versions else 0


def swept_ms(config: TopicConfig) -> int:
    """How much longer than a segment a file of watermarks may stay once it is replaced: it goes as orphans do."""
    return max(ORPHAN_GRACE_MS - config.file_delete_delay_ms, 0) if config.strategy.has_versions else 0


def watermarks_end_ms(log: Log, deleted_ms: int) -> int:
    """When the last watermark ends of keys whose tombstones had gone by then; 0 if the log has no watermarks."""
    return deleted_ms + watermarks_ms(log.config) if log.watermarks_path else 0


def forgotten_ms(log: Log, way: ErasureWay, now_ms: int) -> int:
    """When no file of this log has a key any more that is deleted by now, at the latest; 0 if none may have one now."""
    if not log.watermarks_path:
        return 0
    ends_ms = now_ms if way is ErasureWay.HERE else watermarks_end_ms(log, now_ms)
    return ends_ms + log.config.file_delete_delay_ms + swept_ms(log.config)

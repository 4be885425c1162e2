"""Which files a snapshot of a topic's table holds, read from its manifests alone.

Manifests are immutable, so each is parsed once: what was read of a topic's newest snapshot is kept, and the next look
reads only the manifests that a commit has added since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import LogCorrupt
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.metrics import LiveFile, live_file
from keptlog.table.state import SOURCE, LogState, partition_count

_Parsed = dict[str, tuple[LiveFile, ...]]


class LiveFiles:
    """Reads snapshots, and remembers the manifests of each topic's newest one."""

    def __init__(self) -> None:
        self._parsed: dict[str, _Parsed] = {}

    def of(self, table: Table, snapshot: Snapshot | None = None) -> dict[int, list[LiveFile]]:
        """Files by partition, in offset order, of a snapshot (default: the current one).

        Raises:
            LogCorrupt: a file is not keptlog's, or rows were deleted by delete files.
        """
        topic = table.name()[-1]
        looked_at = snapshot or table.current_snapshot()
        known = self._parsed.get(topic, {})
        parsed: _Parsed = {}
        by_partition: dict[int, list[LiveFile]] = defaultdict(list)
        for manifest in looked_at.manifests(table.io) if looked_at else ():
            files = known.get(manifest.manifest_path) or _parse(topic, table, manifest)
            parsed[manifest.manifest_path] = files
            for file in files:
                by_partition[file.partition].append(file)
        if snapshot is None:
            self._parsed[topic] = parsed
        for files_of_partition in by_partition.values():
            files_of_partition.sort(key=lambda file: file.segment.base_offset)
        return dict(by_partition)

    def logs(self, table: Table, config: TopicConfig) -> list[Log]:
        """The logs of a topic, one for each partition, in the current snapshot.

        Raises:
            LogCorrupt: files overlap, lie beyond the log end offset or in a partition that does not exist.
        """
        return logs_of(table.name()[-1], table.properties, self.of(table), config)


def logs_of(topic: str, properties: dict[str, str], files: dict[int, list[LiveFile]], config: TopicConfig) -> list[Log]:
    """Put files and state together.

    Raises:
        LogCorrupt: they contradict each other.
    """
    partitions = partition_count(topic, properties)
    for partition in files:
        if not 0 <= partition < partitions:
            raise LogCorrupt(
                f"topic {topic} has {partitions} partitions, but file {files[partition][0].segment.path} is in "
                f"partition {partition}; roll the table back to the snapshot before"
            )
    names = (TopicPartition(topic, number) for number in range(partitions))
    return [_log(name, properties, files.get(name.partition, []), config) for name in names]


def _log(
    topic_partition: TopicPartition, properties: dict[str, str], files: Sequence[LiveFile], config: TopicConfig
) -> Log:
    state = LogState.read(topic_partition.topic, topic_partition.partition, properties)
    segments = tuple(file.segment for file in files)
    if segments and segments[-1].last_offset >= state.log_end_offset:
        raise LogCorrupt(
            f"{topic_partition}: segment {segments[-1].path} reaches offset {segments[-1].last_offset}, but the log "
            f"ends at {state.log_end_offset}: another program appended it; roll the table back to the snapshot before"
        )
    return Log(
        topic_partition=topic_partition,
        config=config,
        segments=segments,
        log_start_offset=state.log_start_offset,
        log_end_offset=state.log_end_offset,
        checkpoint=state.checkpoint,
        uncleanable=state.uncleanable,
        watermarks_path=state.watermarks_path,
        is_ingested=SOURCE in properties,
    )


def _parse(topic: str, table: Table, manifest: ManifestFile) -> tuple[LiveFile, ...]:
    if manifest.content == ManifestContent.DELETES:
        if manifest.has_added_files() or manifest.has_existing_files():
            raise LogCorrupt(
                f"topic {topic}: manifest {manifest.manifest_path} holds delete files of another program, whose rows "
                "would come back in a clean; rewrite the table's data files there, or roll it back"
            )
        return ()
    path = manifest.manifest_path
    return tuple(live_file(topic, entry, path) for entry in manifest.fetch_manifest_entry(table.io))

"""Replaces segments by their cleaned ones: the moment at which a clean becomes visible, whole.

Files and checkpoints of all topic-partitions of a topic move in one commit, and only if the log still is what the plan
was made from. Whoever comes second, a zombie or another cleaner, finds that it is not, and gets ``StalePlan``:

    plan      [ a ][ b ][ c ]           removes a, b, c, adds d, checkpoint 0 -> 30
    now       [ a ][ x ]                b and c are not live: somebody else has cleaned them

Appends that came meanwhile lie behind the planned range and disturb nobody: the next round builds on them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.errors import InvariantViolated, StalePlan
from keptlog.log.plan import Step, StepKind
from keptlog.log.result import Rewritten
from keptlog.table.append import require_staged
from keptlog.table.commit import COMMIT_ID, OPERATION, RUN_ID, Committer, Land
from keptlog.table.files import TableFiles
from keptlog.table.live_files import LiveFiles
from keptlog.table.metrics import LiveFile, data_file_of
from keptlog.table.state import LogState, first_dirty_offset
from keptlog.table.topics import topic_of


@dataclass(frozen=True)
class Swap:
    """The outcomes of one run for one topic, on their way to be live."""

    topic: str
    rewritten: Sequence[Rewritten]
    run_id: str

    def run(self, committer: Committer, files: TableFiles, live_files: LiveFiles, broker: Mapping[str, str]) -> None:
        """Check and commit.

        Raises:
            StalePlan: the log is no longer what the plan was made from; nothing landed and nothing is lost.
            InvariantViolated: the commit would break an invariant.
        """
        self._require_sound()

        def prepare(table: Table) -> Land:
            if not topic_of(table, broker).config.is_compacted:
                raise StalePlan(f"topic {self.topic} is no longer compacted (cleanup.policy); nothing lost, plan again")
            live = live_files.of(table)
            for outcome in self.rewritten:
                partition = outcome.step.topic_partition.partition
                state = LogState.read(self.topic, partition, table.properties)
                _require_fresh(outcome.step, state, live.get(partition, []))
            self._require_log_afterwards(live)
            require_staged(files, (segment.path for outcome in self.rewritten for segment in outcome.added))
            return lambda: self._land(table, live)

        committer.commit(self.topic, prepare, self._commit_id)

    @property
    def _commit_id(self) -> str:
        """Of the run and of the files: a run may swap twice, first to clean and then to expire."""
        paths = sorted(segment.path for outcome in self.rewritten for segment in outcome.removed + outcome.added)
        return f"{self.run_id}/{hashlib.sha256(' '.join(paths).encode()).hexdigest()}"

    def _require_sound(self) -> None:
        """What can be told without the table: I1, I2, and that the outcomes belong together."""
        partitions = [outcome.step.topic_partition for outcome in self.rewritten]
        if len(set(partitions)) < len(partitions) or any(each.topic != self.topic for each in partitions):
            raise InvariantViolated(
                f"a swap of topic {self.topic} was given {', '.join(map(str, partitions))}: each must be of the topic, "
                "and occur once; nothing was committed, please report this"
            )
        for outcome in self.rewritten:
            if not outcome.removed:
                raise InvariantViolated(
                    f"{outcome.step.topic_partition}: the commit would remove no segment, so that a second one "
                    "could not be told from it (I1); nothing was committed, please report this"
                )

    def _require_log_afterwards(self, live: Mapping[int, Sequence[LiveFile]]) -> None:
        """No path is used twice (I2), and no two segments of a log overlap (G2)."""
        referenced = {file.segment.path for files in live.values() for file in files}
        for outcome in self.rewritten:
            log = outcome.step.topic_partition
            reused = [segment.path for segment in outcome.added if segment.path in referenced]
            if reused:
                raise InvariantViolated(
                    f"{log}: {reused[0]} is live already (I2); nothing was committed, please report this"
                )
            referenced.update(segment.path for segment in outcome.added)
            removed = {segment.path for segment in outcome.removed}
            kept = [file.segment for file in live[log.partition] if file.segment.path not in removed]
            after = sorted([*kept, *outcome.added], key=lambda segment: segment.base_offset)
            for earlier, later in itertools.pairwise(after):
                if later.base_offset <= earlier.last_offset:
                    raise InvariantViolated(
                        f"{log}: {later.path} would overlap {earlier.path} at offset {later.base_offset} (G2); "
                        "nothing was committed, please report this"
                    )

    def _land(self, table: Table, live: Mapping[int, Sequence[LiveFile]]) -> None:
        summary = {RUN_ID: self.run_id, COMMIT_ID: self._commit_id, OPERATION: "clean"}
        transaction = table.transaction()
        snapshot = transaction.update_snapshot(snapshot_properties=summary).overwrite()
        moved: dict[str, str] = {}
        for outcome in self.rewritten:
            partition = outcome.step.topic_partition.partition
            removed = {segment.path for segment in outcome.removed}
            for file in live[partition]:
                if file.segment.path in removed:
                    snapshot.delete_data_file(file.data_file)
            for segment in outcome.added:
                snapshot.append_data_file(data_file_of(partition, segment))
            if outcome.step.kind is StepKind.COMPACT:
                moved[first_dirty_offset(partition)] = str(outcome.step.end_offset)
        snapshot.commit()
        if moved:
            transaction.set_properties(moved)
        transaction.commit_transaction()


def _require_fresh(step: Step, state: LogState, live: Sequence[LiveFile]) -> None:
    """Whether the log still is what the step was planned from.

    Raises:
        StalePlan: naming what changed.
    """
    if (state.checkpoint, state.log_start_offset) != (step.checkpoint, step.log_start_offset):
        raise _stale(
            step,
            f"its first dirty offset was {step.checkpoint} and its log start offset {step.log_start_offset}, "
            f"now they are {state.checkpoint} and {state.log_start_offset}",
        )
    live_paths = {file.segment.path for file in live}
    for segment in step.segments:
        if segment.path not in live_paths:
            raise _stale(step, f"segment {segment.path} is no longer live")
    if step.kind is StepKind.EXPIRE:
        return
    planned = {segment.path for segment in step.segments}
    for file in live:
        if file.segment.base_offset < step.end_offset and file.segment.path not in planned:
            raise _stale(step, f"segment {file.segment.path} came into the range that was cleaned")


def _stale(step: Step, what: str) -> StalePlan:
    return StalePlan(f"{step.topic_partition}: the log changed since it was planned: {what}; nothing lost, plan again")

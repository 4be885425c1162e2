"""A log too large for one commit: what is live after each leg, and what becomes of a clean that ends between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from keptlog.engine.jobs import Result, Task
from keptlog.errors import StalePlan, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.assessment import assess
from keptlog.log.broker import BrokerConfig
from keptlog.log.plan import describe_step
from keptlog.log.record import NewRecord
from keptlog.log.steps import Compact, Expire
from keptlog.log.told.explain import explain
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.verify import verify_log
from keptlog.table.io.files import TableFiles
from tests.in_process import InProcessJobs, in_process_engine
from tests.logs import open_store

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
TOPIC = "t"
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": str(HOUR_MS)}


def _nothing() -> None: ...


class Killed(BaseException):
    """What no handler of errors sees."""


class Scene:
    """A topic of one log, of which each append is a segment; a commit takes one segment unless a test says more."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.store, self.now_ms = open_store(home), NOW_MS
        self.store.create_topic(TOPIC, 1, SETTINGS | {name.replace("_", "."): text for name, text in settings.items()})
        self.commit_max_bytes = 1
        self.between: dict[int, Callable[[], object]] = {}
        """By the number of a leg what happens before it."""

    @property
    def cleaner(self) -> Cleaner:
        broker = BrokerConfig(keptlog_cleaner_commit_max_bytes=self.commit_max_bytes)
        return Cleaner(self.store, in_process_engine(self.store.files), broker)

    def append(self, *pairs: tuple[str, str | None], topic: str = TOPIC) -> Scene:
        self.now_ms += HOUR_MS
        records = [NewRecord(k.encode(), None if v is None else v.encode(), self.now_ms, 0) for k, v in pairs]
        self.store.append(topic, records, new_id(), self.now_ms)
        return self

    def clean(self, *, requested: bool = True, cleaner: Cleaner | None = None) -> Pass:
        cleaner = cleaner or self.cleaner
        self.now_ms += HOUR_MS
        begun = cleaner.begin([], new_id(), now_ms=self.now_ms, requested=requested)
        return cleaner.commit(cleaner.stage(begun, progress=self.goes_on))

    def goes_on(self, doing: str) -> None:
        words = doing.split(", leg ")
        if len(words) == 2:
            self.between.pop(int(words[1].split()[0]), _nothing)()

    def kill(self) -> None:
        raise Killed

    @property
    def checkpoint(self) -> int | None:
        return self.store.logs(TOPIC)[0].checkpoint

    @property
    def records(self) -> list[tuple[int, str, str | None]]:
        return [
            (each.offset, (each.key or b"").decode(), None if each.value is None else each.value.decode())
            for _, each in self.store.read(TOPIC, 0)
        ]

    @property
    def state(self) -> dict[bytes | None, bytes | None]:
        return {record.key: record.value for _, record in self.store.read(TOPIC, 0, latest=True)}

    @property
    def segments(self) -> list[tuple[int, int]]:
        return [(each.base_offset, each.last_offset) for each in self.store.logs(TOPIC)[0].segments]

    @property
    def broken(self) -> list[str]:
        """What ``verify`` finds."""
        checks = verify_log(self.store, self.store.logs(TOPIC)[0], self.now_ms)
        return [each.description for each in checks if not each.passed]

    @property
    def commits(self) -> int:
        snapshots = self.store.load_table(TOPIC).metadata.snapshots
        return sum(each.summary is not None and each.summary.get("keptlog.operation") == "clean" for each in snapshots)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Three dirty segments: the latest records are at 1, 3 and 4."""
    scene = Scene(tmp_path)
    return scene.append(("a", "1"), ("b", "1")).append(("a", "2"), ("c", "1")).append(("a", "3"))


LEFT = [(1, "b", "1"), (3, "c", "1"), (4, "a", "3")]


def test_each_leg_is_a_commit_and_the_last_one_moves_the_checkpoint(scene: Scene) -> None:
    seen: list[tuple[list[int], int | None, int]] = []

    def look() -> None:
        seen.append(([offset for offset, _, _ in scene.records], scene.checkpoint, scene.commits))

    scene.between = {1: look, 2: look, 3: look}
    done = scene.clean()
    assert not done.failed
    assert seen == [([0, 1, 2, 3, 4], None, 0), ([1, 2, 3, 4], None, 1), ([1, 3, 4], None, 2)]
    assert (scene.records, scene.checkpoint, scene.commits) == (LEFT, 5, 3)


def test_what_is_told_of_a_clean_in_legs_is_the_whole_of_it(scene: Scene) -> None:
    [told] = scene.clean().committed
    assert (told.counts.total, told.counts.superseded, told.counts.kept) == (5, 2, 3)
    assert (len(told.removed), len(told.added), told.map_keys, told.winners_found) == (3, 3, 3, 3)
    last = scene.store.observe(TOPIC).last_passes[TopicPartition(TOPIC, 0)]
    assert (last.map_keys, last.bytes_written) == (3, told.bytes_written)
    assert last.bytes_read == sum(segment.size_bytes for segment in told.removed)


def test_a_plan_says_in_how_many_commits_and_a_log_that_fits_one_has_one(scene: Scene) -> None:
    [step] = scene.cleaner.plan(now_ms=scene.now_ms + HOUR_MS, requested=True).steps
    assert describe_step(step).endswith(", in up to 3 commits")
    scene.commit_max_bytes = 2**40
    [step] = scene.cleaner.plan(now_ms=scene.now_ms + HOUR_MS, requested=True).steps
    assert "commits" not in describe_step(step)
    scene.clean()
    assert (scene.records, scene.commits) == (LEFT, 1)


def test_a_purge_between_two_legs_takes_what_the_first_has_replaced(scene: Scene) -> None:
    replaced = [Path(segment.path.removeprefix("file://")) for segment in scene.store.logs(TOPIC)[0].segments]

    def purge() -> None:
        scene.store.purge(TOPIC, scene.now_ms + 100 * 365 * 24 * HOUR_MS, 2**62)

    def purge_and_look() -> None:
        purge()
        left.extend(path.exists() for path in replaced)

    left: list[bool] = []
    scene.between = {2: purge, 3: purge_and_look}
    assert not scene.clean().failed
    assert left == [False, False, True]
    assert scene.records == LEFT


@pytest.mark.parametrize("leg", [2, 3])
def test_a_pass_that_is_killed_between_two_legs_has_lost_nothing_and_the_next_goes_on(scene: Scene, leg: int) -> None:
    before = scene.state
    scene.between = {leg: scene.kill}
    with pytest.raises(Killed):
        scene.clean()
    assert (scene.state, scene.checkpoint, scene.commits) == (before, None, leg - 1)
    assert scene.broken == []
    kept = [segment.path for segment in scene.store.logs(TOPIC)[0].segments][: leg - 1]
    assert not scene.clean().failed
    assert (scene.records, scene.state, scene.checkpoint) == (LEFT, before, 5)
    assert scene.broken == []
    assert [segment.path for segment in scene.store.logs(TOPIC)[0].segments][: leg - 1] == kept


def test_what_is_appended_between_two_legs_is_left_to_the_next_clean(scene: Scene) -> None:
    scene.between = {2: lambda: scene.append(("b", "2")), 3: lambda: scene.append(("c", None))}
    assert not scene.clean().failed
    assert scene.records == [*LEFT, (5, "b", "2"), (6, "c", None)]
    assert scene.checkpoint == 5
    assert not scene.clean().failed
    assert scene.records == [(4, "a", "3"), (5, "b", "2"), (6, "c", None)]


@pytest.mark.parametrize("leg", [2, 3])
def test_who_is_overtaken_between_two_legs_is_told_and_nothing_is_lost(scene: Scene, leg: int) -> None:
    other = Cleaner(scene.store, in_process_engine(scene.store.files))

    def overtake() -> None:
        begun = other.begin([], new_id(), now_ms=scene.now_ms, requested=True)
        assert not other.commit(other.stage(begun)).failed

    scene.between = {leg: overtake}
    done = scene.clean()
    assert isinstance(done.failed[f"{TOPIC}-0"], StalePlan)
    assert not done.committed
    assert (scene.records, scene.checkpoint) == (LEFT, 5)


def test_a_minimum_lag_that_is_set_between_two_legs_stops_the_next_one(scene: Scene) -> None:
    scene.between = {2: lambda: scene.store.alter_topic(TOPIC, {"min.compaction.lag.ms": str(100 * HOUR_MS)})}
    done = scene.clean()
    assert "its settings were altered" in str(done.failed[f"{TOPIC}-0"])
    assert scene.checkpoint is None
    assert [offset for offset, _, _ in scene.records] == [1, 2, 3, 4]


@pytest.mark.parametrize("is_killed", [False, True])
def test_segments_that_became_small_in_a_leg_are_no_active_ones_later(tmp_path: Path, is_killed: bool) -> None:
    """The first two are closed because the third does not go with them into one; after the first leg it would."""
    scene = Scene(tmp_path, segment_ms=str(10**12))
    scene.append(*((f"k{n}", Random(n).randbytes(300).hex()) for n in range(40)))
    scene.append(*((f"k{n}", "") for n in range(40))).append(("active", "1"))
    sizes = [segment.size_bytes for segment in scene.store.logs(TOPIC)[0].segments]
    scene.store.alter_topic(TOPIC, {"internal.segment.bytes": str(sizes[0] + sizes[1])})
    [step] = scene.cleaner.plan(now_ms=scene.now_ms, requested=True).steps
    assert isinstance(step, Compact)
    assert (len(step.legs), step.end_offset) == (2, 80)
    if is_killed:
        scene.between = {2: scene.kill}
        with pytest.raises(Killed):
            scene.clean()
        rules = explain(assess(scene.store.logs(TOPIC)[0], scene.now_ms)).rules
        assert any(each.startswith("cleans have removed records up to offset 80 already") for each in rules)
    assert not scene.clean().failed
    assert scene.checkpoint == 80
    assert [offset for offset, _, _ in scene.records] == list(range(40, 81))


def losing(scene: Scene, leg: int, jobs_before: list[str]) -> Cleaner:
    """A cleaner that loses the job of a leg, the first time that it comes to it."""

    @dataclass(frozen=True)
    class Loses(InProcessJobs):
        def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
            jobs_before.append(doing)
            if f"leg {leg} of" in doing and sum(f"leg {leg} of" in each for each in jobs_before) == 1:
                raise StorageUnavailable("a worker is gone")
            return super().run(tasks, doing)

    engine = replace(
        scene.cleaner.engine,
        start_jobs=lambda run_id, progress: Loses(scene.store.files, run_id, progress, new_id()),
    )
    return replace(scene.cleaner, engine=engine)


@pytest.mark.parametrize("leg", [2, 3])
def test_a_job_that_is_lost_is_done_once_more_on_what_stands(scene: Scene, leg: int) -> None:
    jobs: list[str] = []
    done = scene.clean(cleaner=losing(scene, leg, jobs))
    assert not done.failed
    tried = [*range(1, leg + 1), 1, 2, 3]
    assert [doing.split(", ")[1] for doing in jobs if ", leg" in doing] == [f"leg {each} of 3" for each in tried]
    assert (scene.records, scene.checkpoint) == (LEFT, 5)


@pytest.mark.parametrize("leg", [2, 3])
def test_what_is_told_of_a_clean_that_was_tried_again_is_the_whole_of_it(scene: Scene, leg: int) -> None:
    before = scene.store.logs(TOPIC)[0].segments
    [told] = scene.clean(cleaner=losing(scene, leg, [])).committed
    assert (told.counts.total, told.counts.superseded, told.counts.kept) == (5, 2, 3)
    assert told.removed == before
    assert [segment.path for segment in told.added] == [each.path for each in scene.store.logs(TOPIC)[0].segments]
    assert (told.map_keys, told.winners_found) == (3, 3)
    last = scene.store.observe(TOPIC).last_passes[TopicPartition(TOPIC, 0)]
    assert (last.map_keys, last.bytes_written) == (3, told.bytes_written)
    assert last.bytes_read == sum(segment.size_bytes for segment in before)


def test_tombstones_that_a_lost_try_has_stamped_are_told_as_stamped(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.append(("a", None)).append(("b", None)).append(("c", "1"))
    [told] = scene.clean(cleaner=losing(scene, 3, [])).committed
    assert (told.counts.stamped, told.counts.kept, told.counts.total) == (2, 1, 3)


def test_legs_that_have_become_one_are_told_with_those_before_them(tmp_path: Path) -> None:
    """What the first leg leaves of its segment fits into one commit with what is behind it."""
    scene = Scene(tmp_path)
    scene.append(*((f"k{n}", Random(n).randbytes(300).hex()) for n in range(40)))
    scene.append(*((f"k{n}", "") for n in range(40)))
    large, small = scene.store.logs(TOPIC)[0].segments
    scene.commit_max_bytes = large.size_bytes
    [step] = scene.cleaner.plan(now_ms=scene.now_ms + HOUR_MS, requested=True).steps
    assert isinstance(step, Compact)
    assert len(step.legs) == 2
    jobs: list[str] = []
    done = scene.clean(cleaner=losing(scene, 2, jobs))
    assert not done.failed
    assert f"rewriting {TOPIC}-0" in jobs
    [told] = done.committed
    assert (told.counts.total, told.counts.superseded) == (80, 40)
    assert told.removed == (large, small)


def test_a_map_that_can_not_be_deleted_takes_no_clean_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cleans needs no permission to delete (docs/lake.md)."""
    really, refused = TableFiles.delete, list[str]()

    def delete(files: TableFiles, path: str) -> None:
        if "/staging/" in path:
            refused.append(path)
            raise PermissionError(13, "Permission denied", path)
        really(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)
    assert not scene.clean().failed
    assert (scene.records, scene.checkpoint, scene.commits) == (LEFT, 5, 3)
    assert refused
    monkeypatch.undo()
    scene.store.purge(TOPIC, scene.now_ms + 100 * 365 * 24 * HOUR_MS, 0)
    assert not [path for path in refused if Path(path.removeprefix("file://")).exists()]


def test_other_logs_of_the_pass_do_not_wait_for_a_large_one(scene: Scene) -> None:
    scene.store.create_topic("small", 1, SETTINGS)
    scene.append(("x", "1"), topic="small")
    small: list[int | None] = []
    scene.between = {1: lambda: small.append(scene.store.logs("small")[0].checkpoint), 2: scene.kill}
    with pytest.raises(Killed):
        scene.clean()
    assert small == [1]


def test_by_version_no_tombstone_goes_before_the_records_that_it_beats(tmp_path: Path) -> None:
    """That at 1 has the higher version and is past its horizon; the late record of its key is in the last leg."""
    scene = Scene(tmp_path, compaction_strategy="timestamp")
    scene.append(("z", None)).append(("a", None)).clean()
    scene.now_ms += 2 * HOUR_MS
    assert scene.clean(requested=False).committed, "z goes, and it is the turn of a clean"
    late = [NewRecord(b"a", b"old", NOW_MS, 0), NewRecord(b"b", b"1", NOW_MS, 0)]
    scene.store.append(TOPIC, late, new_id(), scene.now_ms)
    seen: list[dict[bytes | None, bytes | None]] = []
    scene.between = {2: lambda: seen.append(scene.state)}
    assert not scene.clean().failed
    assert seen == [{b"b": b"1"}]
    assert scene.records == [(1, "a", None), (3, "b", "1")]
    [step] = scene.cleaner.plan(now_ms=scene.now_ms).steps
    assert isinstance(step, Expire)
    assert not scene.clean(requested=False).failed
    assert scene.records == [(3, "b", "1")]


def test_an_expiry_takes_no_more_than_a_commit_does_and_the_next_pass_has_the_rest(tmp_path: Path) -> None:
    scene = Scene(tmp_path, internal_segment_bytes="1")
    scene.append(("a", None)).append(("b", None)).append(("c", "1")).clean()
    scene.now_ms += 2 * HOUR_MS
    assert not scene.clean(requested=False).failed
    assert [key for _, key, _ in scene.records] == ["b", "c"]
    assert not scene.clean(requested=False).failed
    assert [key for _, key, _ in scene.records] == ["c"]
    assert not scene.clean(requested=False).committed


def test_a_shorter_clean_does_not_forget_how_far_a_broken_off_one_has_begun(tmp_path: Path) -> None:
    """What that one removed for records behind the shorter one's end stays removed, and stamped where it is dirty."""
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1")).append(("a", "2"), ("c", None), ("b", "2"))
    scene.append(("c", None), ("a", "3"), ("d", "1")).append(("a", "4"), ("d", "2")).append(("e", "4"), ("d", "3"))
    scene.between[4] = scene.kill
    with pytest.raises(Killed):
        scene.clean()
    scene.store.alter_topic(TOPIC, {"min.compaction.lag.ms": str(9 * HOUR_MS // 2)})
    scene.clean()
    [log] = scene.store.logs(TOPIC)
    assert (log.checkpoint, log.cleaning_to, scene.broken) == (5, 12, [])
    scene.store.alter_topic(TOPIC, {}, ["min.compaction.lag.ms"])
    scene.clean()
    [log] = scene.store.logs(TOPIC)
    assert (log.checkpoint, log.cleaning_to, scene.broken) == (12, None, [])


def test_a_map_that_was_swept_between_two_legs_makes_the_clean_stale_and_no_uncleanable_log(
    scene: Scene, tmp_path: Path
) -> None:
    def sweep() -> None:
        staged = list(tmp_path.rglob("staging/**/*.arrow"))
        assert staged
        for each in staged:
            each.unlink()

    scene.between = {2: sweep}
    stopped = scene.clean().failed[f"{TOPIC}-0"]
    assert isinstance(stopped, StalePlan)
    assert "staged below" in str(stopped)
    assert (scene.commits, scene.store.logs(TOPIC)[0].uncleanable) == (1, None)
    assert not scene.clean().failed
    assert scene.records == LEFT

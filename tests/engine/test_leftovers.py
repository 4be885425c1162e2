"""Staged maps that can't be deleted: a purge takes them, and what was rewritten counts all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.engine.tasks import Sizes
from keptlog.errors import LogCorrupt, StalePlan
from keptlog.log.record import Record
from keptlog.log.result import RewriteResult, verify
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.storage.files import StoredFile
from tests.building import Clean
from tests.in_process import in_process_engine
from tests.local_log import LocalFiles, live_records, write_segment

MAPPED_APART = Sizes(whole_log_records=1, mapped_in_runs_records=0)


class RefusesToDelete(LocalFiles):
    def delete(self, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)


class RefusesToList(LocalFiles):
    def list(self, folder: str) -> Iterator[StoredFile]:
        raise ConnectionError(f"{folder} can't be listed")


class RefusesOnce(LocalFiles):
    def delete(self, path: str) -> None:
        refused = Path(path).parent.parent / "refused"
        if not refused.exists():
            refused.touch()
            raise ConnectionResetError("the connection was cut")
        super().delete(path)


@pytest.fixture
def inputs(tmp_path: Path) -> list[Segment]:
    log = [[Record(2 * n, b"a", b"1", 1), Record(2 * n + 1, b"%d" % n, b"1", 1)] for n in range(3)]
    return [write_segment(tmp_path / f"in-{number}", records, 3) for number, records in enumerate(log)]


def rewritten(files: LocalFiles, step: Compact, location: Path, sizes: Sizes = MAPPED_APART) -> RewriteResult:
    [outcome] = in_process_engine(files, sizes).rewrite([step], {step.topic_partition.topic: str(location)}, "run")
    return outcome


def staged(location: Path) -> list[Path]:
    return list(location.rglob("staging/**/*.arrow"))


@pytest.mark.parametrize("files", [RefusesToDelete(), RefusesToList()], ids=["deletes nothing", "lists nothing"])
def test_a_clean_is_done_although_its_maps_stay(tmp_path: Path, inputs: list[Segment], files: LocalFiles) -> None:
    outcome = rewritten(files, Clean(0, 6).step(inputs), tmp_path)
    verify(outcome)
    assert [record.offset for record in live_records(outcome)] == [1, 3, 4, 5]
    assert staged(tmp_path)


def test_each_leg_is_done_although_their_maps_stay(tmp_path: Path, inputs: list[Segment]) -> None:
    step = Clean(0, 6, commit_max_bytes=1).step(inputs)
    legs = list(in_process_engine(RefusesToDelete()).rewrite_in_legs(step, str(tmp_path), "run"))
    assert [leg.ends_step for leg in legs] == [False, False, True]
    assert staged(tmp_path)


def test_one_map_that_can_not_be_deleted_keeps_no_other(tmp_path: Path, inputs: list[Segment]) -> None:
    in_parts = Sizes(whole_log_records=1, mapped_in_runs_records=0, map_part_records=1)
    rewritten(RefusesOnce(), Clean(0, 6).step(inputs), tmp_path, in_parts)
    assert len(staged(tmp_path)) == 1


@pytest.mark.parametrize("error", [StalePlan, LogCorrupt])
def test_what_a_clean_died_of_is_told_although_its_maps_stay(
    tmp_path: Path, inputs: list[Segment], error: type[Exception]
) -> None:
    gone = Path(inputs[0].path)
    step = Clean(2, 6).step(inputs)
    gone.unlink() if error is StalePlan else gone.write_bytes(b"x" * inputs[0].size_bytes)
    with pytest.raises(error):
        rewritten(RefusesToDelete(), step, tmp_path)
    assert staged(tmp_path)

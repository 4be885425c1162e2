"""Statistics of another program, which the table names, keep a request open: nobody is told to move them away."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table.statistics import StatisticsFile

from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow
from tests.erasure.byte_search import files_with
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import set_main, table_of


def with_a_key_deleted(folder: Path) -> World:
    """It is asked for, and is still to be verified."""
    world = World(folder)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    return world


def test_a_file_of_them_is_taken_out_of_the_table_and_not_only_out_of_the_folder(tmp_path: Path) -> None:
    world = with_a_key_deleted(tmp_path)
    table = table_of(tmp_path, "users")
    path = Path(table.location().removeprefix("file://")) / "metadata" / "of-another.stats"
    path.write_bytes(b"PFA1" + b"\0" * 20 + b"PFA1")
    counted = StatisticsFile.model_validate(
        {
            "snapshot-id": table.metadata.current_snapshot_id,
            "statistics-path": f"file://{path}",
            "file-size-in-bytes": path.stat().st_size,
            "file-footer-size-in-bytes": 20,
            "blob-metadata": [],
        }
    )
    table.update_statistics().set_statistics(counted).commit()

    row = world.verified()

    assert row.erasure.is_open
    (told,) = [text for text in row.blocked if path.name in text]
    assert "have whoever made it take it out of the table" in told
    assert "move it out of the topic's folder" not in told


@pytest.mark.parametrize("kept_bytes", [8, 16])
def test_a_bound_that_may_have_been_cut_off_is_not_taken_for_a_whole_key(tmp_path: Path, kept_bytes: int) -> None:
    """How much of a key stays is a setting of the table, and the manifest does not say it."""
    world = with_a_key_deleted(tmp_path)
    table = table_of(tmp_path, "users")
    setting = {"write.metadata.metrics.column.key": f"truncate({kept_bytes})"}
    table.transaction().set_properties(setting).commit_transaction()
    table = table_of(tmp_path, "users")
    before = table.metadata.current_snapshot_id
    assert before is not None
    table.append(to_arrow(0, [Record(0, KEY, None, 1)]))
    set_main(tmp_path, before, "users")
    for path in files_with([tmp_path], [KEY]):
        if path.suffix == ".parquet":
            path.unlink()
    (manifest,) = (path for path in files_with([tmp_path], [KEY[:kept_bytes]]) if path.suffix == ".avro")

    row = world.verified()

    assert row.erasure.is_open
    assert [text for text in row.blocked if str(manifest) in text]
    world.later(2 * DAY_MS)
    world.purge()
    assert world.verified().erasure.state == "verified"

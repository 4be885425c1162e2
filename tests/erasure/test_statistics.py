"""Statistics of another program, which the table names, keep a request open: nobody is told to move them away."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table.statistics import StatisticsFile

from tests.erasure.world import KEY, OTHER, VALUE, World
from tests.table.foreign import table_of


def test_a_file_of_them_is_taken_out_of_the_table_and_not_only_out_of_the_folder(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
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

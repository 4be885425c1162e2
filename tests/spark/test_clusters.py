"""Who reads what Spark wrote down may read while Spark still writes it."""

from __future__ import annotations

from pathlib import Path

from tests.spark.clusters import whole_events


def test_a_line_that_is_not_whole_yet_is_read_the_next_time(tmp_path: Path) -> None:
    noted = tmp_path / "app-1.inprogress"
    noted.write_text('{"Event":"SparkListenerJobStart"}\n{"Event":"SparkListenerJ')
    assert list(whole_events(tmp_path)) == [{"Event": "SparkListenerJobStart"}]

    noted.write_text('{"Event":"SparkListenerJobStart"}\n{"Event":"SparkListenerJobEnd"}\n')
    assert [event["Event"] for event in whole_events(tmp_path)] == ["SparkListenerJobStart", "SparkListenerJobEnd"]


def test_a_file_that_is_renamed_meanwhile_is_read_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "app-1.inprogress").symlink_to(tmp_path / "app-1")

    assert list(whole_events(tmp_path)) == []

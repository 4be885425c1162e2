"""What a copy of a home names, and its original has let go since, is told as that: nothing is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import urlparse

import pytest
from click.testing import CliRunner

from keptlog.cli import cli
from keptlog.errors import InvalidConfig, LogCorrupt
from keptlog.table.catalogs.outlived_copy import tells_outlived
from tests.table.stores import NOW_MS, TOPIC, append_each, create, store_at, values


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """A home and its copy."""
    original, copy = tmp_path / "home", tmp_path / "copy"
    append_each(create(original), [("k", "1")])
    shutil.copytree(original, copy)
    return original, copy


def let_go(original: Path) -> None:
    """What some twenty commits do: they delete the metadata that the copy names."""
    named = store_at(original).metadata_locations()[TOPIC]
    append_each(store_at(original), [("k", "2")])
    Path(urlparse(named).path).unlink()


def told(original: Path, has: str) -> str:
    what = f"this is a copy of the home at {original}, and what its catalog names of topic {TOPIC} is gone"
    return f"{what}: the original has {has} since; use KEPTLOG_HOME={original}"


def test_it_is_told_where_the_original_has_gone_on(homes: tuple[Path, Path]) -> None:
    original, copy = homes
    let_go(original)
    with pytest.raises(InvalidConfig) as refused:
        values(store_at(copy))
    assert str(refused.value) == told(original, "gone on")


def test_it_is_told_where_the_original_has_deleted_the_topic(homes: tuple[Path, Path]) -> None:
    original, copy = homes
    store_at(original).delete_topic(TOPIC, NOW_MS)
    with pytest.raises(InvalidConfig) as refused:
        values(store_at(copy))
    assert str(refused.value) == told(original, "deleted it")


def test_what_the_original_names_too_is_lost(homes: tuple[Path, Path]) -> None:
    original, copy = homes
    Path(urlparse(store_at(original).metadata_locations()[TOPIC]).path).unlink()
    with pytest.raises(LogCorrupt):
        values(store_at(copy))


def test_a_setting_of_pyiceberg_that_names_no_catalog_hides_no_loss(
    homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, copy = homes
    Path(urlparse(store_at(original).metadata_locations()[TOPIC]).path).unlink()
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "3")
    with pytest.raises(LogCorrupt):
        values(store_at(copy))


def test_doctor_blames_no_other_program(homes: tuple[Path, Path]) -> None:
    original, copy = homes
    let_go(original)
    done = CliRunner().invoke(cli, ["doctor", "--json"], env={"KEPTLOG_HOME": str(copy)})
    problems = [each for check in json.loads(done.stdout)["checks"] for each in check["problems"]]
    assert [each["subject"] for each in problems] == [str(copy), "a copy"]
    assert f"names of {TOPIC} is gone" in problems[1]["what"]
    assert problems[1]["cause"].startswith("the original has gone on since")


def test_doctor_takes_no_copy_for_a_catalog_that_was_put_back(homes: tuple[Path, Path]) -> None:
    original, copy = homes
    listed = store_at(original).load_table(TOPIC).current_snapshot()
    append_each(store_at(original), [("k", "2")])
    assert listed
    Path(urlparse(listed.manifest_list).path).unlink()  # as a purge does, long before the metadata goes
    done = CliRunner().invoke(cli, ["doctor", "--json"], env={"KEPTLOG_HOME": str(copy)})
    problems = [each for check in json.loads(done.stdout)["checks"] for each in check["problems"]]
    assert [each["subject"] for each in problems] == [str(copy), "a copy"]
    assert f"names of {TOPIC} is gone" in problems[1]["what"]


def test_a_copy_is_told_by_no_words_that_any_error_may_have(homes: tuple[Path, Path]) -> None:
    original, copy = homes
    let_go(original)
    with pytest.raises(InvalidConfig) as refused:
        values(store_at(copy))
    assert tells_outlived(refused.value)
    assert not tells_outlived(LogCorrupt(str(refused.value)))

"""The steps of docs/backup.md hold also for homes, copies and nights that are not those of the page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.readme.transcript import shell, steps


def _block(has: str) -> str:
    """The one block of the page that has this in it."""
    (found,) = [step.commands for step in steps("docs/backup.md") if has in step.commands]
    return found


_TOPIC, _CATALOG, _WRITERS = _block("compact\necho"), _block("catalog.backup("), _block("ada@example.net")
_FILES, _BACK, _ASIDE = _block("warehouse/. backup"), _block("rm -r .keptlog"), _block("aside/")
_READERS, _BY_FILE = _block("reader list"), _block("users.parquet")
_OLD_CATALOG, _NO_CATALOG = _block("cp backup/catalog.db"), _block("--new-catalog")


def test_a_copy_that_kept_no_times_loses_no_metadata_file_that_the_catalog_needs(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC + _CATALOG)
    paste(_WRITERS + _FILES)
    for path in (tmp_path / "backup").rglob("*"):
        os.utime(path)
    os.utime(tmp_path / "backup" / "catalog.db", (0, 0))
    paste("rm -r .keptlog\ncp -a backup .keptlog\n" + _ASIDE)
    assert "ada@example.org" in paste("keptlog read users")
    assert "0 problems" in paste("keptlog doctor")


def test_a_backup_of_a_home_that_was_moved_has_its_records_and_its_keys(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC)
    secret = tmp_path / "secrets" / "erasure.secret"
    secret.parent.mkdir()
    secret.write_text("secret")
    (tmp_path / ".keptlog").rename(tmp_path / "home")
    (tmp_path / "home" / "warehouse").rename(tmp_path / "disk")
    (tmp_path / "home" / "receipts.key").write_text("key")
    (tmp_path / "home" / "erasure.secret").symlink_to(secret)
    (tmp_path / "home" / "warehouse").symlink_to(tmp_path / "disk")
    (tmp_path / ".keptlog").symlink_to(tmp_path / "home")
    paste(_CATALOG + _FILES)
    for gone in ("home", "disk", "secrets"):
        shutil.rmtree(tmp_path / gone)
    (tmp_path / ".keptlog").unlink()
    paste("cp -a backup .keptlog\n")
    assert "ada@example.org" in paste("keptlog read users")
    assert (tmp_path / ".keptlog" / "receipts.key").read_text() == "key"
    assert (tmp_path / ".keptlog" / "erasure.secret").read_text() == "secret"


def test_a_night_in_which_the_catalog_is_lost_spoils_no_backup_of_before_and_makes_no_empty_catalog(
    tmp_path: Path,
) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC + _CATALOG + _FILES)
    (tmp_path / ".keptlog" / "catalog.db").unlink()
    with pytest.raises(AssertionError):
        paste(_CATALOG)
    with pytest.raises(AssertionError):
        paste(_CATALOG.replace("backup", "backup-2").replace("catalog.backup-2", "catalog.backup"))
    assert not (tmp_path / ".keptlog" / "catalog.db").exists()
    paste("rm -r .keptlog\ncp -a backup .keptlog\n")
    assert "ada@example.org" in paste("keptlog read users")


def test_what_verify_had_found_is_known_after_a_backup_is_brought_back(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC)
    (segment,) = (tmp_path / ".keptlog" / "warehouse" / "keptlog" / "users" / "data").rglob("*.parquet")
    segment.write_bytes(segment.read_bytes().replace(b"ada@example.org", b"ada@example.ogr"))
    assert "exit code 1" in paste('keptlog verify > verified || echo "exit code $?"\n' + _CATALOG + _FILES)
    assert "exit code 1" in paste(
        'rm -r .keptlog\ncp -a backup .keptlog\nkeptlog status > seen || echo "exit code $?"\n'
    )


def test_a_reader_that_had_read_what_was_lost_is_listed_and_starts_over_as_the_page_says(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(
        _TOPIC
        + "keptlog reader add users app\n"
        + _CATALOG
        + _WRITERS
        + "keptlog read users --as-reader app\n"
        + _FILES
    )
    paste(_BACK)
    assert "app" in paste(_READERS)
    paste("keptlog reader add users app --start-over\n" + _WRITERS)
    assert "ada@example.net" in paste("keptlog read users --as-reader app")


def test_a_backup_has_all_records_whatever_writers_commit_between_its_two_steps(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC + _CATALOG)
    home = open_home(tmp_path / ".keptlog")
    for number in range(25):
        home.store.append("users", [NewRecord(b"cy", b"%d" % number, 1, 0)], f"run-{number}", 1)
    paste(_FILES)
    assert "ada@example.org" in paste(_BACK)
    paste(_ASIDE)
    assert "0 problems" in paste("keptlog doctor")


def test_what_moves_newer_metadata_aside_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """It ended at the first file that was moved already, and all topics behind that one stayed as they were."""
    paste = shell(tmp_path)
    paste(_TOPIC + "keptlog topic create zoo\n" + _CATALOG + _WRITERS)
    paste(_WRITERS.replace("users", "zoo") + _FILES + "rm -r .keptlog\ncp -a backup .keptlog\n")
    metadata = tmp_path / ".keptlog" / "warehouse" / "keptlog" / "users" / "metadata"
    (first, *_) = sorted(metadata.glob("00002-*.metadata.json"))
    first.rename(tmp_path / first.name)
    shutil.copy2(first.parent / next(metadata.glob("00001-*")).name, metadata / "v1.metadata.json")
    shutil.copy2(metadata / "v1.metadata.json", tmp_path / "backup" / metadata.relative_to(tmp_path / ".keptlog"))
    for _ in range(2):
        assert "refused" not in paste(_ASIDE)
    assert "0 problems" in paste("keptlog doctor")


def test_a_topic_whose_metadata_is_lost_is_named_and_the_backup_has_the_others(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC + "keptlog topic create lost\n")
    for path in (tmp_path / ".keptlog" / "warehouse" / "keptlog" / "lost" / "metadata").glob("*.metadata.json"):
        path.unlink()
    told = paste(_CATALOG)
    assert "not in the backup: " in told
    assert "keptlog/lost/metadata/" in told
    paste(_FILES + "rm -r .keptlog\ncp -a backup .keptlog\n")
    assert "ada@example.org" in paste("keptlog read users")


def test_a_topic_of_several_partitions_goes_by_a_file_into_one_that_has_as_many(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste("keptlog topic create users --partitions 3 --config cleanup.policy=compact\n" + _WRITERS)
    with pytest.raises(AssertionError, match=r"partition [12] does not exist"):
        paste(_BY_FILE)
    paste("rm -r new users.parquet\n" + _BY_FILE.replace("--partitions 1", "--partitions 3"))
    records = [line.split('"key"')[1] for line in paste("keptlog read users").splitlines()]
    assert len(records) == 2
    assert [line.split('"key"')[1] for line in paste("KEPTLOG_HOME=new keptlog read users").splitlines()] == records


def test_who_has_lost_the_catalog_alone_has_all_records_with_an_older_one_or_with_none(tmp_path: Path) -> None:
    paste = shell(tmp_path)
    paste(_TOPIC + _CATALOG + _WRITERS)
    for lost in ("", _WRITERS):
        paste(lost)
        for block in (_OLD_CATALOG, _NO_CATALOG):
            shown = paste(block)
            assert "ada@example.net" in shown
            assert "cy@example.org" in shown
    assert "0 problems" in paste("keptlog doctor")

"""Two catalogs with one warehouse: what is said of the other's live topics destroys none of them."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import NAMESPACE
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


@pytest.fixture
def catalog_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Chooses one of several databases, all over one warehouse."""
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")

    def choose(name: str) -> None:
        monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / f"home-{name}"))
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path}/{name}.db")

    return choose


@pytest.fixture
def staging(keptlog: Run, catalog_of: Callable[[str], None]) -> Callable[[str], None]:
    """The catalog with the topic other, beside production's with a record in users."""
    for name, topic in (("production", "users"), ("staging", "other")):
        catalog_of(name)
        open_home().store.create_topic(topic, 1, {"cleanup.policy": "compact"})
        open_home().store.append(topic, [NewRecord(b"a", b"1", NOW_MS)], f"append-{topic}", NOW_MS)
    return catalog_of


@pytest.mark.parametrize("command", [("verify",), ("doctor", "--no-probes", "--quiet")])
def test_a_folder_that_another_catalog_may_have_is_told_so_before_anything_is_advised(
    keptlog: Run, staging: Callable[[str], None], tmp_path: Path, command: tuple[str, ...]
) -> None:
    told = keptlog(*command)
    text = " ".join((told.out + told.err).split())
    assert told.code == 1
    assert f"file://{tmp_path}/lake/keptlog/users: no topic of this catalog lies in this folder, and 5 files (" in text
    first = text.index("If another catalog has it, leave it: what is deleted here is gone there.")
    assert first < text.index("Only if no other catalog has it: put the topic back")
    assert "any more" not in text


def test_doctor_names_the_file_of_which_another_catalog_has_registered_a_copy(
    keptlog: Run, catalog_of: Callable[[str], None], tmp_path: Path
) -> None:
    catalog_of("production")
    open_home().store.create_topic("users", 1, {"cleanup.policy": "compact"})
    named = open_home().store.load_table("users").metadata_location
    catalog_of("staging")
    (tmp_path / "safe").mkdir()
    copy = shutil.copy(named.removeprefix("file://"), tmp_path / "safe")
    catalog = open_home().store.committer.catalog
    catalog.create_namespace_if_not_exists(NAMESPACE)
    catalog.register_table((NAMESPACE, "users"), f"file://{copy}")
    told = keptlog("doctor", "--no-probes", "--json")
    [hint] = [hint for each in told.json["checks"] for hint in each["hints"] if each["name"] == "history"]
    assert hint["what"] == f"topic users: another home may have it under the name {named}"
    assert "if none has it, move that file away" in hint["todo"]


def test_topics_that_get_another_folder_end_the_alarm_and_stay_where_they_are(
    keptlog: Run, staging: Callable[[str], None], tmp_path: Path
) -> None:
    assert "catalog.update_namespace_properties('keptlog', updates={'location': FOLDER})" in keptlog("verify").err
    updates = {"location": f"file://{tmp_path}/lake/staging"}
    open_catalog(tmp_path).update_namespace_properties(NAMESPACE, updates=updates)
    assert keptlog("verify").code == 0
    assert '"value": "1"' in keptlog("read", "other").out
    created = keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    assert f"file://{tmp_path}/lake/staging/users" in created.out
    staging("production")
    assert '"value": "1"' in keptlog("read", "users").out


def test_what_nobody_needs_is_not_to_be_deleted_where_another_catalog_may(
    keptlog: Run, staging: Callable[[str], None], tmp_path: Path
) -> None:
    for metadata in (tmp_path / "lake" / "keptlog" / "users").rglob("*.metadata.json"):
        metadata.unlink()
    assert "Only if no other catalog has it: delete the folder, if nobody needs it" in keptlog("verify").err


def test_a_new_topic_lies_apart_from_what_may_be_left_of_another_catalogs_topic_without_records(
    keptlog: Run, staging: Callable[[str], None], tmp_path: Path
) -> None:
    """Its metadata may lie elsewhere, and then only what keptlog keeps beside the table is here."""
    remembered = tmp_path / "lake" / "keptlog" / "carts" / "metadata" / "receipts" / "runs" / "1.json"
    remembered.parent.mkdir(parents=True)
    remembered.write_text("{}")
    created = keptlog("topic", "create", "carts", "--config", "cleanup.policy=compact")
    assert f"file://{tmp_path}/lake/keptlog/carts-" in created.out


def test_who_deletes_is_asked_for_the_other_catalogs_too(
    keptlog: Run, staging: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    also = "for good, also for each other catalog that has their files?"
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = keptlog("topic", "delete", "other")
    assert f"delete topic other and all its records {also}" in asked.err
    (tmp_path / "topics.yaml").write_text("topics: {}\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = keptlog("topic", "apply", str(tmp_path / "topics.yaml"), "--delete", "other")
    assert f"delete other and all their records {also}" in asked.err
    assert keptlog("topic", "list").out.count("other") == 1


def test_a_home_s_own_catalog_is_asked_for_alone(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert "all its records for good? [y/N]" in keptlog("topic", "delete", "users").err

"""``keptlog topic``: what a person types first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.namespaces import DELETING, NAMESPACE
from tests.cli.conftest import Run


def test_a_topic_is_created_listed_and_described(keptlog: Run) -> None:
    created = keptlog(
        "topic", "create", "db.public.users-v2", "--partitions", "3", "--config", "cleanup.policy=compact"
    )
    assert created.code == 0
    assert keptlog("topic", "list", "--json").json["topics"] == [
        {"topic": "db.public.users-v2", "partitions": 3, "cleanup_policy": ["compact"]}
    ]
    described = keptlog("topic", "describe", "db.public.users-v2", "--json").json
    origin = {each["setting"]: (each["value"], each["from"]) for each in described["settings"]}
    assert origin["cleanup.policy"] == ("compact", "topic")
    assert origin["delete.retention.ms"] == (86_400_000, "stored")
    assert origin["segment.ms"] == (604_800_000, "default")
    assert [log["log_end_offset"] for log in described["logs"]] == [0, 0, 0]


def test_broker_settings_give_defaults_and_describe_says_so(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_ROLL_HOURS", "2")
    keptlog("topic", "create", "t")
    settings = keptlog("topic", "describe", "t", "--json").json["settings"]
    assert {"setting": "segment.ms", "value": 7_200_000, "from": "broker log.roll.hours"} in settings


def test_what_decides_over_deletion_stays_what_it_was_when_the_topic_was_made(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_RETENTION_HOURS", "2")
    keptlog("topic", "create", "t")
    monkeypatch.delenv("KEPTLOG_BROKER_LOG_RETENTION_HOURS")
    settings = keptlog("topic", "describe", "t", "--json").json["settings"]
    assert {"setting": "retention.ms", "value": 7_200_000, "from": "stored"} in settings
    assert keptlog("topic", "alter", "t", "--config", "segment.ms=5", "--json").json["config"] == {"segment.ms": "5"}


def test_describe_shows_the_brokers_own_settings_and_what_has_no_meaning_here(keptlog: Run, home: Path) -> None:
    keptlog("topic", "create", "t")
    (home / "server.properties").write_text("# ours\nlog.cleaner.threads=2\n")
    described = keptlog("topic", "describe", "t", "--json").json
    assert {"setting": "log.cleaner.threads", "value": 2, "from": "broker"} in described["broker"]
    assert {"setting": "log.cleaner.backoff.ms", "value": 15_000, "from": "default"} in described["broker"]
    assert "min.insync.replicas" in described["without_meaning"]["topic"]
    assert "log.preallocate" in described["without_meaning"]["broker"]
    text = keptlog("topic", "describe", "t").out
    assert "min.insync.replicas: the storage replicates, not keptlog" in text


def test_describe_shows_where_an_ingested_topic_comes_from_and_how_far_it_was_read(keptlog: Run) -> None:
    keptlog("topic", "create", "t", "--partitions", "2")
    assert keptlog("topic", "describe", "t", "--json").json["source"] is None
    source = SourceIdentity("there", "4QDcFYv2", "broker:9092")
    open_home().store.ingest("t", [Arrival(OffsetRange(0, None, 40, 55), ())], source, 2, "run")
    described = keptlog("topic", "describe", "t", "--json").json
    assert described["source"] == {"topic": "there", "topic_id": "4QDcFYv2", "bootstrap": "broker:9092"}
    assert [(log["log_start_offset"], log["log_end_offset"]) for log in described["logs"]] == [(40, 55), (0, 0)]
    assert [log["position_at_source"] for log in described["logs"]] == [55, None]
    text = keptlog("topic", "describe", "t").out
    assert "ingested from topic there, topic id 4QDcFYv2, bootstrap broker:9092\n" in text
    assert "position at source" in text


def test_altering_takes_effect_and_can_be_taken_back(keptlog: Run) -> None:
    keptlog("topic", "create", "t")
    keptlog("topic", "alter", "t", "--config", "cleanup.policy=compact", "--config", "min.compaction.lag.ms=5")
    altered = keptlog("topic", "alter", "t", "--delete-config", "min.compaction.lag.ms", "--json")
    assert altered.json["config"] == {"cleanup.policy": "compact"}


def test_who_alters_a_topic_so_that_its_latest_records_go_is_told_so(keptlog: Run) -> None:
    """It said "cleanup.policy deleted", and retention took all that was older than a week."""
    keptlog("topic", "create", "t", "--config", "cleanup.policy=compact")
    altered = keptlog("topic", "alter", "t", "--delete-config", "cleanup.policy")
    assert altered.out == "altered t: cleanup.policy=delete (the default)\n"
    notes = [
        "cleanup.policy is delete from now on: it is not compacted any more",
        "segments with nothing younger than retention.ms=604800000 (7 d) will be deleted, "
        "the latest records of their keys too",
    ]
    assert altered.err.splitlines() == notes
    back = keptlog("topic", "alter", "t", "--config", "cleanup.policy=compact")
    assert back.out == "altered t: cleanup.policy=compact\n"
    assert back.err.endswith("only the latest record stays, and records without a key are deleted\n")
    told = keptlog("topic", "alter", "t", "--config", "cleanup.policy=delete", "--json")
    assert (told.json["notes"], told.err) == (notes, "")


def test_a_deleted_topic_is_gone_with_its_files_and_its_name_is_free_again(
    keptlog: Run, home: Path, lines: Callable[..., str]
) -> None:
    for name in ("a", "a.b"):
        keptlog("topic", "create", name)
        keptlog("append", name, "--file", lines({"key": "k", "value": "v"}))
    assert keptlog("topic", "delete", "a", "--yes").code == 0
    left = [path for path in (home / "warehouse").rglob("a/**/*") if path.is_file()]
    assert {path.parent.name for path in left} <= {"receipts"}
    assert len(keptlog("read", "a.b").json_lines) == 1
    keptlog("topic", "create", "a")
    assert keptlog("read", "a").out == ""
    assert keptlog("topic", "delete", "missing", "--yes").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["topic", "create", "a b"], "topic name 'a b' is not allowed"),
        (["topic", "create", ".."], "topic name '..' is not allowed"),
        (["topic", "create", "t", "--config", "cleanup.polcy=compact"], "did you mean cleanup.policy?"),
        (["topic", "create", "t", "--config", "min.insync.replicas=2"], "has no meaning on a lake"),
        (["topic", "create", "t", "--config", "cleanup.policy"], "is not NAME=VALUE"),
        (["topic", "create", "t", "--config", "min.cleanable.dirty.ratio=2"], "out of range"),
        (["topic", "create", "exists"], "exists"),
        (["topic", "alter", "exists"], "nothing to alter"),
        (["topic", "alter", "exists", "--config", "max.compaction.lag.ms=0"], "out of range"),
        (["topic", "alter", "exists", "--delete-config", "no.such"], "no.such"),
        (["topic", "describe", "missing"], "there is no topic 'missing'"),
        (["topic", "create"], "Missing argument"),
        (["tpic"], "there is no command 'tpic': did you mean keptlog topic?"),
    ],
)
def test_bad_input_gets_one_line_and_changes_nothing(keptlog: Run, arguments: list[str], message: str) -> None:
    keptlog("topic", "create", "exists")
    before = keptlog("topic", "describe", "exists").out
    refused = keptlog(*arguments)
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("keptlog: ")
    assert refused.err.count("\n") == 1
    assert message in refused.err
    assert keptlog("topic", "describe", "exists").out == before
    assert [each["topic"] for each in keptlog("topic", "list", "--json").json["topics"]] == ["exists"]


def test_a_wrong_broker_setting_is_named_with_where_it_was_looked_for(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_CLEANER_MIN_CLEANABLE_RATIO", "half")
    refused = keptlog("topic", "list")
    assert refused.code == 2
    assert "log.cleaner.min.cleanable.ratio='half' is not a number" in refused.err
    assert "server.properties" in refused.err


def test_a_home_whose_topics_were_deleted_is_no_error(keptlog: Run, home: Path) -> None:
    assert keptlog("topic", "create", "users").code == 0
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    for command in (["topic", "list"], ["status"], ["plan"], ["purge"]):
        looked = keptlog(*command)
        assert looked.code == 0
        assert f"no topics in home {home}: keptlog topic create" in looked.out


def test_a_deletion_that_was_interrupted_is_shown_and_finished(keptlog: Run, home: Path) -> None:
    keptlog("topic", "create", "users")
    keptlog("topic", "create", "orders")
    catalog = open_catalog(home)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, "users"), (DELETING, "users"))
    for command in (["topic", "list"], ["status"]):
        shown = keptlog(*command)
        assert (shown.code, "orders" in shown.out) == (1, True)
        assert shown.err == (
            "keptlog: users: its deletion was begun and is not finished; "
            "if nobody is at it, keptlog topic delete users finishes it\n"
        )
    assert [each["subject"] for each in keptlog("status", "--json").json["errors"]] == ["users"]
    assert keptlog("topic", "create", "users").code == 2
    assert keptlog("topic", "delete", "users", "--yes").out.startswith(
        "deleted users: 1 file\nusers: receipt deletion-"
    )
    assert (keptlog("topic", "list").code, keptlog("status").code) == (0, 0)
    assert keptlog("topic", "delete", "users", "--yes").code == 2


def test_a_deletion_tells_its_receipt_and_names_what_could_not_be_deleted(
    keptlog: Run, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "users")
    keptlog("topic", "create", "orders")
    keptlog("append", "users", "--file", lines({"key": "k", "value": "v"}))
    real = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if path.endswith(".parquet"):
            raise PermissionError(13, "Permission denied")
        real(files, path)

    with monkeypatch.context() as patch:
        patch.setattr(TableFiles, "delete", delete)
        deleted = keptlog("topic", "delete", "users", "--yes")
        assert deleted.code == 1
        assert "not wholly deleted users: " in deleted.out
        [named] = [line for line in deleted.out.splitlines() if "not deleted: " in line]
        assert named.endswith(".parquet: PermissionError: [Errno 13] Permission denied")
        assert "users: 1 file could not be deleted: " in deleted.err
        assert "keptlog topic delete users, or the next purge, finishes it" in deleted.err
        again = keptlog("topic", "delete", "users", "--yes", "--json")
        assert (again.code, again.json["is_over"]) == (1, False)
        [error] = again.json["errors"]
        assert (error["subject"], error["message"] in again.err) == ("users", True)
        purged = keptlog("purge", "--json")
        assert (purged.code, sorted(purged.json["topics"] | purged.json["deletions"])) == (1, ["orders", "users"])
        assert [file["reason"] for file in purged.json["deletions"]["users"]["not_deleted"]] == [
            "PermissionError: [Errno 13] Permission denied"
        ]
    purged = keptlog("purge")
    assert purged.code == 0
    assert "deleted users: " in purged.out
    assert keptlog("topic", "list").code == 0

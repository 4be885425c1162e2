"""Ways in which a home can be broken: what is done to it, what doctor says, and what makes it whole again.

Where a command mends it, doctor names it, and the test runs just that. Else ``mend`` is what a person does.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.notify.ticks import leave_tick
from keptlog.table.changes.mark import Failure
from tests.broken_topics import cut_in_half, first_manifest, metadata_file
from tests.patched_home import Act, BrokenHome, Patched
from tests.table.foreign import insert, roll_back, table_of
from tests.table.stores import TOPIC, append_each, clean, new_id

LOG = f"{TOPIC}-0"
DAY_MS = 24 * 3_600_000


def _spark_at(address: str) -> Act:
    return lambda broken: broken.set("KEPTLOG_SPARK_MASTER", address)


LOCAL_SPARK, SERVER_GONE = _spark_at("local[2]"), _spark_at("sc://127.0.0.1:1")
CLUSTER_GONE, NO_HADOOP = _spark_at("spark://127.0.0.1:1"), _spark_at("yarn")


def _away(broken: Patched) -> None:
    shutil.rmtree(broken.home)


def _as_file(broken: Patched) -> None:
    shutil.rmtree(broken.home)
    broken.home.write_text("no folder")


def _empty(broken: Patched) -> None:
    shutil.rmtree(broken.home)
    broken.home.mkdir()


def _moved(broken: Patched) -> None:
    broken.home.rename(broken.home.with_name("moved"))
    broken.set("KEPTLOG_HOME", str(broken.home.with_name("moved")))


def _copied(broken: Patched) -> None:
    shutil.copytree(broken.home, broken.home.with_name("copy"))
    broken.set("KEPTLOG_HOME", str(broken.home.with_name("copy")))


def _damaged_index(broken: Patched) -> None:
    """A page that SQLite does not have to read for the topics themselves."""
    database = broken.home / "catalog.db"
    with closing(sqlite3.connect(database)) as connection:
        query = "select rootpage from sqlite_master where type = 'index' and tbl_name = 'iceberg_tables'"
        [(page,)] = connection.execute(query).fetchall()
        [(page_bytes,)] = connection.execute("pragma page_size").fetchall()
    with database.open("r+b") as file:
        file.seek((page - 1) * page_bytes + page_bytes // 2)
        file.write(bytes(page_bytes // 2))


def _restored_catalog(broken: Patched) -> None:
    append_each(broken.store, [("c", "1")], [("d", "1")])
    shutil.copy(broken.whole / "catalog.db", broken.home / "catalog.db")


def _foreign_setting(broken: Patched) -> None:
    table_of(broken.home).transaction().set_properties({"kafka.of.mine": "x"}).commit_transaction()


def _damaged_reader(broken: Patched) -> None:
    table_of(broken.home).transaction().set_properties({"log.reader.search": "{"}).commit_transaction()


def _newer_format(broken: Patched) -> None:
    table_of(broken.home).transaction().set_properties({"keptlog.format-version": "2.0"}).commit_transaction()


def _remembered_changes_damaged(broken: Patched) -> None:
    _superseded(broken)
    _purge(broken)
    broken.unset("KEPTLOG_NOW_MS")
    [changes] = (broken.home / "warehouse").rglob("receipts/runs/*.json")
    cut_in_half(changes)


def _unfinished_deletion(broken: Patched) -> None:
    catalog = broken.store._catalog
    catalog.create_namespace_if_not_exists("keptlog_deleting")
    catalog.rename_table(("keptlog", "orders"), ("keptlog_deleting", "orders"))


def _dropped(broken: Patched) -> None:
    broken.store._catalog.drop_table(("keptlog", TOPIC))


def _dated_ahead(broken: Patched) -> None:
    broken.store.alter_topic(TOPIC, {"message.timestamp.after.max.ms": str(10**15)})
    ahead_ms = time.time_ns() // 1_000_000 + 400 * DAY_MS
    broken.store.append(TOPIC, [NewRecord(b"z", b"1", ahead_ms, 0)], new_id(), ahead_ms)


def _tagged(broken: Patched) -> None:
    first = table_of(broken.home).metadata.snapshots[0].snapshot_id
    table_of(broken.home).manage_snapshots().create_tag(first, "audit").commit()
    _superseded(broken)
    _purge(broken)


def _superseded(broken: Patched) -> None:
    clean(broken.store)
    broken.set("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + 3 * DAY_MS))


def _drop_tag(broken: Patched) -> None:
    table_of(broken.home).manage_snapshots().remove_tag("audit").commit()
    _purge(broken)


def _purge(broken: Patched) -> None:
    open_home(broken.home).purger.purge([TOPIC], now_ms=time.time_ns() // 1_000_000 + 3 * DAY_MS)


def _late(broken: Patched) -> None:
    broken.store.alter_topic(TOPIC, {"max.compaction.lag.ms": "1000"})


def _marked(broken: Patched) -> None:
    log = broken.store.logs(TOPIC)[0]
    failure = Failure(TopicPartition(TOPIC, 0), "a column is foreign", log.checkpoint, topic_id=log.topic_id)
    backoff = Backoff(1000, 1000)
    for _ in range(3):
        broken.store.mark_uncleanable(TOPIC, [failure], time.time_ns() // 1_000_000, backoff)


def _verified_broken(broken: Patched) -> None:
    whole = broken.segment().read_bytes()
    broken.segment().write_bytes(whole[: len(whole) // 2])
    open_home().verify(TOPIC)
    broken.segment().write_bytes(whole)


def _silent(broken: Patched) -> None:
    leave_tick(broken.home, "", time.time_ns() // 1_000_000 - DAY_MS, 30_000)


def _ticking(broken: Patched) -> None:
    leave_tick(broken.home, "", time.time_ns() // 1_000_000, 30_000)


def _no_java(broken: Patched) -> None:
    broken.set("JAVA_HOME", str(broken.home / "no-java"))


def _old_java(broken: Patched) -> None:
    java = broken.home / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    broken.set("JAVA_HOME", str(broken.home / "old"))


def _losing_catalog(broken: Patched) -> None:
    (broken.home / "catalog.db").unlink()  # topics of its own would be another problem
    broken.set("PYICEBERG_CATALOG__KEPTLOG__PY_CATALOG_IMPL", "tests.catalogs.wrong.FirstRowsLost")
    broken.set("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{broken.home / 'shared.db'}?timeout=30")
    broken.set("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{broken.home / 'lake'}")


def _another_catalog(broken: Patched) -> None:
    for name in ("PY_CATALOG_IMPL", "URI", "WAREHOUSE"):
        broken.unset(f"PYICEBERG_CATALOG__KEPTLOG__{name}")
    shutil.copy2(broken.whole / "catalog.db", broken.home)


def _yaml(broken: Patched) -> None:
    Path(".pyiceberg.yaml").write_text("catalog: {keptlog: [")


def _segment_away(broken: Patched) -> None:
    broken.segment().unlink()


def _folder_for_segment(broken: Patched) -> None:
    segment = broken.segment()
    segment.unlink()
    segment.mkdir()


BROKEN_HOMES = (
    BrokenHome("it is not there", "home", "there is no home at ", _away, mend=Patched.put_back),
    BrokenHome("it is a file", "home", "is a file, and a home is a folder", _as_file, mend=Patched.put_back),
    BrokenHome("its disk is not mounted", "home", "is an empty folder", _empty, mend=Patched.put_back),
    BrokenHome(
        "its catalog is gone",
        "home",
        "has lost its catalog",
        lambda broken: (broken.home / "catalog.db").unlink(),
        mend=Patched.put_back,
    ),
    BrokenHome(
        "its catalog is damaged",
        "home",
        "is damaged (file is not a database)",
        lambda broken: (broken.home / "catalog.db").write_bytes(b"no database" * 500),
        mend=Patched.put_back,
    ),
    BrokenHome(
        "a page of its catalog is damaged",
        "catalog",
        "/catalog.db is damaged (",
        _damaged_index,
        mend=Patched.put_back,
    ),
    BrokenHome(
        "its warehouse is gone",
        "catalog",
        "/warehouse, where all files of the topics lie, is not there",
        lambda broken: shutil.rmtree(broken.home / "warehouse"),
        mend=Patched.put_back,
    ),
    BrokenHome("it was moved", "home", "was moved from ", _moved, "ln -s "),
    BrokenHome("it is a copy", "home", "is a copy of the home at ", _copied, "export KEPTLOG_HOME="),
    BrokenHome(
        "a broker setting that there is not",
        "settings",
        "did you mean log.cleaner.threads?",
        lambda broken: broken.write("server.properties", "log.cleaner.thread=2\n"),
        mend=lambda broken: broken.write("server.properties", "log.cleaner.threads=2\n"),
    ),
    BrokenHome(
        "a line of Spark's settings",
        "settings",
        "spark.properties line 1 is not spark.name=value",
        lambda broken: broken.write("spark.properties", "executors 3\n"),
        mend=lambda broken: broken.write("spark.properties", ""),
    ),
    BrokenHome(
        "a way to tell people",
        "settings",
        "KEPTLOG_NOTIFY_",
        lambda broken: broken.set("KEPTLOG_NOTIFY_SLAK_URL", "http://127.0.0.1/x"),
        mend=lambda broken: broken.unset("KEPTLOG_NOTIFY_SLAK_URL"),
    ),
    BrokenHome(
        "PyIceberg's configuration is no YAML",
        "settings",
        ".pyiceberg.yaml line 1 can't be read as YAML",
        _yaml,
        mend=lambda _: Path(".pyiceberg.yaml").unlink(),
    ),
    BrokenHome(
        "a metadata file is cut off",
        "topics",
        ".metadata.json",
        lambda broken: cut_in_half(metadata_file(broken.store, TOPIC)),
        mend=Patched.put_back,
    ),
    BrokenHome(
        "a manifest is gone",
        "topics",
        "-m0.avro",
        lambda broken: first_manifest(broken.store, TOPIC).unlink(),
        mend=Patched.put_back,
    ),
    BrokenHome("a segment is gone", "files", "is missing from storage", _segment_away, mend=Patched.put_back),
    BrokenHome(
        "a folder is where a segment was",
        "files",
        "is missing from storage",
        _folder_for_segment,
        mend=Patched.put_back,
    ),
    BrokenHome(
        "a segment is cut off",
        "files",
        "bytes, not ",
        lambda broken: cut_in_half(broken.segment()),
        mend=Patched.put_back,
    ),
    BrokenHome(
        "another program wrote to a topic",
        "topics",
        "another program changed it",
        lambda broken: insert(broken.home, 3),
        f"keptlog repair {TOPIC}",
    ),
    BrokenHome(
        "a topic was rolled back",
        "topics",
        "it was rolled back from snapshot ",
        lambda broken: roll_back(broken.home, table_of(broken.home).metadata.snapshots[0].snapshot_id),
        f"keptlog repair {TOPIC}",
    ),
    BrokenHome(
        "another program's setting",
        "topics",
        "another program has set it",
        _foreign_setting,
        f"keptlog topic alter {TOPIC} --delete-config of.mine",
    ),
    BrokenHome(
        "a registered reader is damaged",
        "topics",
        "is no registration of a reader",
        _damaged_reader,
        f"keptlog reader remove {TOPIC} search",
    ),
    BrokenHome("a newer format", "topics", "upgrade keptlog", _newer_format, mend=Patched.put_back),
    BrokenHome(
        "a catalog of yesterday",
        "history",
        "the storage knows more than this catalog",
        _restored_catalog,
        mend=Patched.put_back,
    ),
    BrokenHome(
        "what landed before a purge is cut off",
        "changes",
        "list of changes that have landed",
        _remembered_changes_damaged,
        mend=Patched.put_back,
    ),
    BrokenHome(
        "a deletion that was killed",
        "catalog",
        "its deletion was begun and is not finished",
        _unfinished_deletion,
        "keptlog topic delete orders --yes",
    ),
    BrokenHome(
        "a topic whose table was dropped",
        "folders",
        "no topic lies in this folder any more, and ",
        _dropped,
        mend=Patched.put_back,
    ),
    BrokenHome(
        "a clock that is slow",
        "clock",
        "the newest commit is of ",
        lambda broken: broken.set("KEPTLOG_NOW_MS", "1700000000000"),
        mend=lambda broken: broken.unset("KEPTLOG_NOW_MS"),
    ),
    BrokenHome("records dated ahead", "timestamps", "which is still to come", _dated_ahead, mend=Patched.put_back),
    BrokenHome("a tag that holds a value", "holders", "tag audit of ", _tagged, mend=_drop_tag),
    BrokenHome("no purge has come", "holders", "older snapshots of ", _superseded, f"keptlog purge {TOPIC}"),
    BrokenHome(
        "a log past its deadline",
        "conditions",
        "were to be compacted by ",
        _late,
        f"keptlog clean {LOG}",
        mend=lambda broken: clean(broken.store),
    ),
    BrokenHome(
        "a log that can't be cleaned",
        "conditions",
        f"{LOG} is uncleanable",
        _marked,
        f"keptlog clean {LOG}",
        mend=lambda broken: clean(broken.store),
    ),
    BrokenHome("what verify has found", "conditions", "verify found ", _verified_broken, f"keptlog verify {LOG}"),
    BrokenHome("sensors that are off", "conditions", "did not tick for ", _silent, mend=_ticking),
    BrokenHome(
        "a Spark server that is gone", "spark", "no Spark Connect server answers", SERVER_GONE, mend=LOCAL_SPARK
    ),
    BrokenHome(
        "a Spark server that was never started",
        "settings",
        "no Spark Connect server has left its address in ",
        lambda broken: broken.set("KEPTLOG_SPARK_MASTER", f"file:{broken.home}/spark-address"),
        mend=LOCAL_SPARK,
    ),
    BrokenHome("a Spark cluster that is gone", "spark", "no Spark master answers", CLUSTER_GONE, mend=LOCAL_SPARK),
    BrokenHome("YARN without settings", "spark", "no variable says where YARN is", NO_HADOOP, mend=LOCAL_SPARK),
    BrokenHome(
        "an old Java",
        "spark",
        "is Java 11, and Spark needs 17: install Java 17",
        _old_java,
        mend=lambda broken: broken.unset("JAVA_HOME"),
    ),
    BrokenHome(
        "no Java", "spark", "there is no Java where JAVA_HOME=", _no_java, mend=lambda broken: broken.unset("JAVA_HOME")
    ),
    BrokenHome("a catalog that loses updates", "promises", "empty table: ", _losing_catalog, mend=_another_catalog),
)

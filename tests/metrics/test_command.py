"""``keptlog metrics``: what is shown, under which names, in how much detail; in a file and to a real scrape."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from examples.ports import free_port
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.told.exposition import reference
from tests.metrics.conftest import scrape_text, scraped
from tests.metrics.promql import Labels
from tests.notify.conftest import DAY_MS, NOW_MS, SETTINGS, Scene

KAFKAS = {
    "kafka_log_logcleaner_cleaner_recopy_percent",
    "kafka_log_logcleaner_max_buffer_utilization_percent",
    "kafka_log_logcleaner_max_clean_time_secs",
    "kafka_log_logcleaner_max_compaction_delay_secs",
    "kafka_log_logcleanermanager_max_dirty_percent",
    "kafka_log_logcleanermanager_time_since_last_run_ms",
    "kafka_log_logcleanermanager_uncleanable_bytes",
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    "kafka_log_log_logendoffset",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_numlogsegments",
    "kafka_log_log_size",
}
"""As jmx_exporter writes them with Strimzi's rules, of what has a meaning here."""


def labels(**told: str) -> Labels:
    return frozenset(told.items())


def test_kafkas_metrics_have_the_names_that_jmx_exporter_gives_them(scene: Scene) -> None:
    scene.topic()
    scene.clean("users")
    scene.store.append("users", [NewRecord(b"key-of-a-person", b"3", NOW_MS, 0)], new_id(), NOW_MS)
    seen = scraped(scene)
    assert {name for name in seen.by_name if name.startswith("kafka_")} == KAFKAS
    assert seen.by_name["kafka_log_logcleanermanager_uncleanable_partitions_count"] == {
        labels(logDirectory=str(scene.home)): 0
    }
    assert seen.by_name["kafka_log_log_logendoffset"] == {labels(topic="users", partition="0"): 3}
    status = scene.keptlog("status", "--json").json
    [log], told = status["logs"], status["metrics"]
    assert seen.by_name["kafka_log_logcleanermanager_max_dirty_percent"] == {labels(): told["max-dirty-percent"]}
    assert seen.by_name["kafka_log_log_numlogsegments"] == {labels(topic="users", partition="0"): log["segments"]}


def test_a_log_is_told_with_its_deadline_and_the_cost_of_its_last_clean(scene: Scene) -> None:
    scene.topic(max_compaction_lag_ms=str(DAY_MS - 60_000))
    of_users = labels(topic="users", partition="0")
    late = scraped(scene)
    assert late.by_name["keptlog_log_deadline_timestamp_seconds"] == {of_users: NOW_MS / 1000 - 60}
    assert late.by_name["keptlog_log_late_seconds"] == {of_users: 60}
    assert late.by_name["keptlog_log_due"] == {of_users: 1}
    assert "keptlog_last_pass_read_bytes" not in late.by_name
    scene.clean("users")
    cleaned = scraped(scene)
    assert cleaned.by_name["keptlog_log_late_seconds"] == {of_users: 0}
    assert "keptlog_log_deadline_timestamp_seconds" not in cleaned.by_name
    last = next(iter(scene.store.observe("users").last_passes.values()))
    assert cleaned.by_name["keptlog_last_pass_read_bytes"] == {of_users: last.bytes_read}
    assert cleaned.by_name["keptlog_last_pass_written_bytes"] == {of_users: last.bytes_written}
    assert cleaned.by_name["keptlog_last_pass_timestamp_seconds"] == {of_users: last.ended_ms / 1000}
    assert list(cleaned.by_name["keptlog_held_bytes"].values()) == [late.by_name["kafka_log_log_size"][of_users]]


def test_with_more_logs_than_there_may_be_series_only_topics_or_totals_are_told(scene: Scene) -> None:
    for topic, partitions in (("orders", 2), ("users", 2)):
        scene.store.create_topic(topic, partitions, SETTINGS)
        scene.store.append(
            topic, [NewRecord(b"k", b"v", NOW_MS, 0), NewRecord(b"k", b"v", NOW_MS, 1)], new_id(), NOW_MS
        )
    by_log, by_topic, total = (scraped(scene, "--max-series", str(most)) for most in (4, 3, 1))
    told = [list(each.by_name["keptlog_detail"]) for each in (by_log, by_topic, total)]
    assert told == [[labels(detail="topic-partition")], [labels(detail="topic")], [labels(detail="total")]]
    ends = [each.by_name["kafka_log_log_logendoffset"] for each in (by_log, by_topic, total)]
    assert ends[0] == {
        labels(topic=topic, partition=str(number)): 1 for topic in ("orders", "users") for number in range(2)
    }
    assert ends[1] == {labels(topic="orders"): 2, labels(topic="users"): 2}
    assert ends[2] == {labels(): 4}
    # What a rule asks is answered in each of them, with the same outcome.
    for expression in ("max(keptlog_log_late_seconds)", "sum(keptlog_log_due)", "sum(keptlog_erasures_open)"):
        assert by_log.value(expression) == by_topic.value(expression) == total.value(expression)
    longest = max(len(series) for name, series in total.by_name.items() if name not in HOME_WIDE)
    assert longest == 1
    scene.environment.setenv("KEPTLOG_METRICS_MAX_SERIES", "3")
    assert scraped(scene).by_name["keptlog_detail"].keys() == by_topic.by_name["keptlog_detail"].keys()


def test_erasures_of_topics_that_cant_be_read_are_no_more_series_than_there_may_be(scene: Scene) -> None:
    """They are told as long as a table tells of them, so there are topics of which no log is counted."""
    for topic in ("orders", "users"):
        scene.topic(topic)
        assert scene.keptlog("erase", topic, "--key", "key-of-a-person", "--by", "1h", "--yes").code == 0
        table = scene.store.load_table(topic)
        table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    for most, told in ((2, {labels(topic="orders"): 1, labels(topic="users"): 1}), (1, {labels(): 2})):
        seen = scraped(scene, "--max-series", str(most))
        assert seen.by_name["keptlog_topics_not_looked_at"][labels(reason="unreadable")] == 2
        assert seen.by_name["keptlog_erasures_open"] == told
    assert list(seen.by_name["keptlog_detail"]) == [labels(detail="total")]


HOME_WIDE = {"keptlog_conditions", "keptlog_topics_not_looked_at"}
"""Names with a series for each of a few words."""


def test_labels_have_names_and_no_key_of_a_record(scene: Scene) -> None:
    scene.topic()
    scene.clean("users")
    scene.break_log("users")
    text = scrape_text(scene)
    assert "key-of-a-person" not in text
    names = set(re.findall(r'[{,](\w+)="', text))
    assert names == {"condition", "detail", "level", "logDirectory", "partition", "reason", "topic"}


def test_what_could_not_be_looked_at_has_no_number(scene: Scene) -> None:
    scene.topic()
    scene.topic("orders")
    path = Path(scene.store.metadata_locations()["users"].removeprefix("file://"))
    path.write_bytes(b"")
    seen = scraped(scene)
    assert seen.by_name["keptlog_topics_not_looked_at"] == {
        labels(reason="unreadable"): 1,
        labels(reason="to be read"): 0,
    }
    assert [dict(each)["topic"] for each in seen.by_name["kafka_log_log_size"]] == ["orders"]
    (scene.home / "catalog.db").write_bytes(b"this is no database" * 1000)
    outcome = scene.keptlog("metrics", "write", "-")
    assert outcome.code == 1
    assert "keptlog_up 0.0" in outcome.out
    assert "kafka_log" not in outcome.out
    assert outcome.err.count("\n") == 1
    assert "catalog.db is damaged" in outcome.err
    assert 'keptlog_conditions{condition="uncleanable"' not in outcome.out


def test_a_condition_begins_when_it_is_told_of(scene: Scene) -> None:
    """Alerts and messages mean the same; a way to people that is misspelt is nothing to a scrape."""
    scene.topic(max_compaction_lag_ms=str(DAY_MS - 60 * 60_000))
    broken = 'sum(keptlog_conditions{condition="compaction deadline",level="broken"})'
    assert scraped(scene).value(broken) == {labels(): 1}
    scene.environment.setenv("KEPTLOG_NOTIFY_LATE", "2h")
    scene.environment.setenv("KEPTLOG_NOTIFY_SMTP_HOST", "mail.example.org")
    assert scraped(scene).value(broken) == {labels(): 0}
    scene.environment.setenv("KEPTLOG_NOTIFY_LATE", "soon")
    outcome = scene.keptlog("metrics", "write", "-")
    assert "KEPTLOG_NOTIFY_LATE=soon: give a time such as 10m; until then" in outcome.err
    assert outcome.err.count("\n") == 1
    assert 'keptlog_conditions{condition="compaction deadline",level="broken"} 1.0' in outcome.out


def test_a_home_without_topics_is_looked_at_and_one_that_has_lost_its_catalog_is_not_taken_for_it(scene: Scene) -> None:
    scene.topic()
    scene.store.delete_topic("users", scene.now_ms)
    seen = scraped(scene)
    assert (seen.by_name["keptlog_up"], seen.by_name["keptlog_logs"]) == ({labels(): 1}, {labels(): 0})
    assert f"there is no topic in {scene.home}" in scene.keptlog("metrics", "write", "-").err
    scene.topic()
    (scene.home / "catalog.db").unlink()
    lost = scene.keptlog("metrics", "write", "-")
    assert lost.code == 1
    assert "keptlog_up 0.0" in lost.out
    assert "has lost its catalog" in lost.err
    (scene.home / "catalog.db").touch()
    emptied = scene.keptlog("metrics", "write", "-")
    assert (emptied.code, emptied.err.count("\n")) == (1, 1)
    assert "catalog.db is empty" in emptied.err


def test_where_no_catalog_is_nothing_is_known_of_the_logs_and_why_is_told(scene: Scene) -> None:
    """The home is not there, or this process lacks the variables that say where its catalog is."""
    for seen in ("there is no home at", "has no catalog"):
        outcome = scene.keptlog("metrics", "write", "-")
        assert outcome.code == 1
        assert "keptlog_up 0.0" in outcome.out
        assert "keptlog_logs" not in outcome.out
        assert seen in outcome.err
        assert "PYICEBERG_" in outcome.err
        scene.home.mkdir(exist_ok=True)
        (scene.home / "broker.properties").write_text("log.cleaner.threads=2\n")


def test_a_file_is_replaced_whole_and_everybody_may_read_it(scene: Scene, tmp_path: Path) -> None:
    scene.topic()
    file = tmp_path / "keptlog.prom"
    file.write_text("before")
    assert scene.keptlog("metrics", "write", str(file)).out == ""
    assert file.read_text().startswith("# HELP keptlog_up")
    assert oct(file.stat().st_mode & 0o777) == "0o644"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("keptlog.prom")] == ["keptlog.prom"]
    refused = scene.keptlog("metrics", "write", str(tmp_path / "nowhere" / "keptlog.prom"))
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "there is no folder" in refused.err


def test_a_disk_without_room_is_told_with_the_file(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    scene.topic()
    file = tmp_path / "keptlog.prom"
    file.write_text("before")
    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", full)
        outcome = scene.keptlog("metrics", "write", str(file))
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert f"{file} can't be written: No space left on device" in outcome.err
    assert file.read_text() == "before"


def test_the_page_lists_every_metric_with_what_it_means() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    listed = re.findall(r"^\| `((?:kafka|keptlog)_\w+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    assert listed == [
        (each.name, ", ".join(f"`{label}`" for label in each.labels), each.meaning) for each in reference()
    ]


def test_a_port_that_is_taken_is_one_line(scene: Scene) -> None:
    scene.topic()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = scene.keptlog("metrics", "serve", "--port", port)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert f"can't listen at 127.0.0.1:{port} (Address already in use)" in outcome.err


def test_a_scrape_gets_what_the_last_look_has_found(scene: Scene) -> None:
    """In a process of its own, as it is run: it sees what others do, and ends when it is told to."""
    scene.topic()
    port = free_port()
    command = [sys.executable, "-m", "keptlog", "metrics", "serve", "--port", str(port), "--every", "1"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr
        try:
            assert process.stderr.readline() == (
                f"keptlog: metrics at http://127.0.0.1:{port}/metrics; stop with Ctrl-C\n"
            )
            assert log_end(port) == 2
            assert scrape_of(port, "?name[]=keptlog_up").splitlines()[1:] == [
                "# TYPE keptlog_up gauge",
                "keptlog_up 1.0",
            ]
            scene.store.append("users", [NewRecord(b"k", b"v", NOW_MS, 0)], new_id(), NOW_MS)
            for _ in range(300):
                if log_end(port) == 3:
                    break
                time.sleep(0.1)
            assert log_end(port) == 3
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 130
        assert process.stderr.read() == "keptlog: stopped\n", "it had no work that could be lost"


def log_end(port: int) -> float:
    text = scrape_of(port)
    [number] = re.findall(r'^kafka_log_log_logendoffset\{partition="0",topic="users"\} (\S+)$', text, re.MULTILINE)
    return float(number)


def scrape_of(port: int, query: str = "") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics{query}", timeout=30) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("options", [["--max-series", "0"], ["--port", "0"], ["--every", "0"]])
def test_nonsense_is_refused(scene: Scene, options: list[str]) -> None:
    assert scene.keptlog("metrics", "serve", *options).code == 2

"""``keptlog ingest kafka``, as if typed, against a broker that wants a password; and killed at any moment."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.broker import SASL_PASSWORD, SASL_USER, Broker
from tests.broker.generated import Generated
from tests.broker.ingesting import Ingesting
from tests.crash.workload import Countdown

KILLS = 6
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.broker.test_ingest_command"])


@pytest.fixture
def there(broker: Broker, tmp_path: Path) -> Ingesting:
    return Ingesting(broker, tmp_path / "home")


def typed(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, for what librdkafka and Spark print is of interest too."""
    environment = os.environ | variables | {"KEPTLOG_HOME": str(home)}
    command = [sys.executable, "-m", "keptlog", "ingest", "kafka", *arguments]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=600, check=False)


def test_a_password_gets_the_records_and_is_found_nowhere(there: Ingesting, tmp_path: Path) -> None:
    there.create(config={"retention.ms": "-1"})
    there.produce(b"a", b"b")
    events, conf = tmp_path / "events", tmp_path / "conf"
    there.home.mkdir()
    (there.home / "kafka.properties").write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username={SASL_USER}\nsasl.password=wrong\n"
    )
    events.mkdir()
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.eventLog.enabled true\nspark.eventLog.dir {events.as_uri()}\n")
    arguments = ("--bootstrap", there.broker.sasl_bootstrap, "--topic", there.topic, "--json")
    refused = typed(there.home, *arguments)
    assert refused.returncode == 2, refused.stderr
    assert "refuses the user or the password" in refused.stderr
    done = typed(
        there.home, *arguments, "--broker-config", KEPTLOG_KAFKA_SASL_PASSWORD=SASL_PASSWORD, SPARK_CONF_DIR=str(conf)
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    of_the_broker = {"cleanup.policy": "delete", "delete.retention.ms": "86400000", "retention.bytes": "-1"}
    assert told["created"] == {there.topic: {"retention.ms": "-1", "compaction.strategy": "offset", **of_the_broker}}
    assert told["left_out_settings"] == {there.topic: {"min.insync.replicas": "the storage replicates, not keptlog"}}
    assert there.values() == [b"a", b"b"]
    written = [path for folder in (there.home, events) for path in folder.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(events) for path in written)
    assert not [path for path in written if SASL_PASSWORD.encode() in path.read_bytes()]
    assert SASL_PASSWORD not in done.stdout + done.stderr + refused.stdout + refused.stderr


def bring(there: Ingesting, kill_at_call: int | None = None) -> int:
    """Ingest; killed at that call that keptlog makes. Gives how many it made, if it was not killed."""
    with Countdown("keptlog/", kill_at_call) as countdown:
        there.bring_all()
    return countdown.calls


def bring_there(bootstrap: str, home: Path, topic: str, kill_at_call: int) -> None:
    bring(Ingesting(Broker(bootstrap, home, "", lambda: None), home, topic), kill_at_call)


def test_a_killed_ingest_brings_whole_ranges_or_nothing_and_the_next_one_the_rest(there: Ingesting) -> None:
    there.create(partitions=2)
    generated = Generated(there.broker, there.topic, 2, random.Random(8))
    generated.produce(400)
    calls = bring(there)
    chance = random.Random(20)
    kills = 0
    while kills < KILLS:
        generated.produce(400)
        at_call = chance.randrange(1, calls)
        arguments = (there.broker.bootstrap, there.home, there.topic, at_call)
        process = PROCESSES.Process(target=bring_there, args=arguments)
        process.start()
        process.join()
        if process.exitcode == 0:  # the first one had more calls to make: it waited longer for the broker
            calls = at_call
            continue
        assert process.exitcode == -signal.SIGKILL
        kills += 1
        expected, ends = generated.expected(), there.end_offsets()
        for partition, records in there.records().items():
            assert records == [record for record in expected[partition] if record.offset < ends[partition]]
    there.bring_all()
    assert there.records() == generated.expected()

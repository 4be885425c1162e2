"""After real use no secret is in what the command says, what is logged, or what tables and receipts hold."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run
from tests.security.searching import found_in, found_in_files
from tests.table.buckets import ABucket, new_bucket, s3_server

TOKEN = "planted-connect-token"  # noqa: S105  # nobody's
SECRETS = {
    "the bucket's secret key": "planted-s3-secret-key",
    "the broker's password": "planted-sasl-password",
    "Spark's token": TOKEN,
    "the path of a webhook": "planted-hook-path",
    "the token of a webhook": "planted-hook-token",
    "the mail server's password": "planted-mail-password",
    "the erasure secret": "5ec4e7" * 11,
}
COMMANDS = {
    "topic create users --config cleanup.policy=compact --config segment.ms=1000": 0,
    "append users --file records.jsonl": 0,
    "topic describe users": 0,
    "topic describe users --json": 0,
    "status --json": 0,
    "read users": 0,
    "erase users --key a --by 30d --yes": 0,
    "clean users": 1,  # Spark's server is not there
    "ingest kafka --topic users": 1,  # nor is the broker
    "notify --test": 1,  # nor is anybody who is to be told
    "notify --once --json": 1,
    "notify --dry-run": 1,
    "purge": 0,
    "topic delete users --yes": 0,
    "receipt list --json": 0,
    "no-such-command": 2,
}
"""Each with its exit code."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[ABucket]:
    with s3_server() as endpoint:
        yield new_bucket(endpoint, None)


@pytest.fixture
def environment(home: Path, tmp_path: Path, bucket: ABucket, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose topics lie in the bucket."""
    values = {
        "KEPTLOG_KAFKA_SASL_PASSWORD": SECRETS["the broker's password"],
        "KEPTLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": SECRETS["Spark's token"],
        "KEPTLOG_SPARK_MASTER": f"sc://127.0.0.1:1/;token={TOKEN}",
        "KEPTLOG_NOTIFY_WEBHOOK_URL": f"http://127.0.0.1:1/{SECRETS['the path of a webhook']}",
        "KEPTLOG_NOTIFY_WEBHOOK_TOKEN": SECRETS["the token of a webhook"],
        "KEPTLOG_NOTIFY_SLACK_URL": f"http://127.0.0.1:1/{SECRETS['the path of a webhook']}",
        "KEPTLOG_NOTIFY_SETTLE": "0s",
        "KEPTLOG_NOTIFY_SMTP_HOST": "127.0.0.1",
        "KEPTLOG_NOTIFY_SMTP_PORT": "1",
        "KEPTLOG_NOTIFY_SMTP_FROM": "keptlog@example.org",
        "KEPTLOG_NOTIFY_SMTP_TO": "somebody@example.org",
        "KEPTLOG_NOTIFY_SMTP_USER": "keptlog",
        "KEPTLOG_NOTIFY_SMTP_PASSWORD": SECRETS["the mail server's password"],
        "KEPTLOG_ERASURE_SECRET": SECRETS["the erasure secret"],
        "PYICEBERG_CATALOG__KEPTLOG__TYPE": "sql",
        "PYICEBERG_CATALOG__KEPTLOG__URI": f"sqlite:///{tmp_path / 'catalog.db'}",
        "PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE": f"s3://{bucket.name}/warehouse",
        "PYICEBERG_CATALOG__KEPTLOG__S3__ENDPOINT": dict(bucket.properties)["s3.endpoint"],
        "PYICEBERG_CATALOG__KEPTLOG__S3__ACCESS_KEY_ID": "someone",
        "PYICEBERG_CATALOG__KEPTLOG__S3__SECRET_ACCESS_KEY": SECRETS["the bucket's secret key"],
        "PYICEBERG_CATALOG__KEPTLOG__S3__REGION": "us-east-1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    home.mkdir()
    return home


def test_no_command_says_one_and_nothing_is_stored(
    environment: Path, bucket: ABucket, keptlog: Run, tmp_path: Path
) -> None:
    (tmp_path / "records.jsonl").write_text('{"key": "a", "value": "1", "timestamp": 1700000000000}\n')
    outcomes = {command: keptlog("--log-level", "debug", *command.split()) for command in COMMANDS}

    assert {command: each.code for command, each in outcomes.items()} == COMMANDS, outcomes
    told = {command: found_in(each.out + each.err, SECRETS) for command, each in outcomes.items()}
    assert not any(told.values()), told
    assert found_in_files(tmp_path, SECRETS) == []
    paths = [path for path, _ in bucket.versions()]
    assert any("receipts" in path for path in paths)
    for path in paths:
        key = path.removeprefix(f"s3://{bucket.name}/")
        body = bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read()
        assert found_in(body, SECRETS) == [], path


def test_what_an_opened_home_looks_like_in_a_log_or_a_debugger_tells_none(
    environment: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = open_home()
    with caplog.at_level(logging.DEBUG):
        home.create_topic("shown", 1, {"cleanup.policy": "compact"})
        home.topics()

    for thing in (home, home.store, home.store.files, home.cleaner(), home.eraser, home.purger):
        assert found_in(repr(thing) + str(thing), SECRETS) == []
    assert found_in(caplog.text, SECRETS) == []

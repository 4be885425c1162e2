"""Servers that ask, and are given what is wrong: one line without a secret in it, the right exit code, no log marked.

The database is a PostgreSQL that asks for passwords (scram); the store is moto's, which checks signatures and
permissions as S3 does once it is told to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests

from examples.lake.postgres import Postgres
from examples.lake.s3_server import s3_server
from keptlog.errors import StorageUnavailable
from keptlog.home import Home, new_id, open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from tests.cli.conftest import Run
from tests.in_process import in_process_engine
from tests.lake.installed import or_skip
from tests.security.searching import found_in
from tests.shared_dagster.conftest import SECRETS as DATABASE_SECRETS
from tests.shared_dagster.conftest import connected, database, lake_uri

__all__ = ["database"]

CATALOG = "PYICEBERG_CATALOG__KEPTLOG__"
GUESS = "planted-wrong-guess"
NOW_MS = wall_clock_ms()
OLD_MS = NOW_MS - 2 * 3_600_000
CONFIG = {"cleanup.policy": "compact", "segment.ms": "3600000"}
SEE = "see to its permissions and credentials"


def given(patch: pytest.MonkeyPatch, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        patch.setenv(CATALOG + name, value)


def append(home: Home, value: bytes) -> None:
    home.append("users", [NewRecord(b"k", value, OLD_MS, 0)], now_ms=NOW_MS)


@pytest.mark.parametrize("role", ["lake", "nobody"])
def test_a_database_that_takes_no_such_password(
    database: Postgres, keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    uri = lake_uri(database, GUESS).replace("//lake:", f"//{role}:")
    given(monkeypatch, {"TYPE": "sql", "URI": uri, "WAREHOUSE": f"file://{home}"})

    outcome = keptlog("topic", "list")

    [line] = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (1, "")
    assert f'password authentication failed for user "{role}"' in line
    assert SEE in line
    assert found_in(line, {"the guess": GUESS, **DATABASE_SECRETS}) == []


def test_connections_that_were_cut_are_made_again_and_nobody_is_told(
    database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, {"TYPE": "sql", "URI": lake_uri(database), "WAREHOUSE": f"file://{tmp_path}/warehouse"})
    home = open_home(tmp_path / "home")
    before = home.topics()

    change_password(database, DATABASE_SECRETS["the database's password"])

    assert home.topics() == before


def test_a_password_that_was_changed_while_a_home_is_open(
    database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, {"TYPE": "sql", "URI": lake_uri(database), "WAREHOUSE": f"file://{tmp_path}/warehouse"})
    home = open_home(tmp_path / "home")
    home.create_topic("users", 1, CONFIG)
    append(home, b"1")
    append(home, b"2")
    cleaner = replace(home.cleaner(), engine=in_process_engine(home.store.files))
    staged = cleaner.stage(cleaner.begin(["users"], new_id(), now_ms=NOW_MS, requested=True))

    change_password(database, GUESS)
    try:
        with pytest.raises(StorageUnavailable, match=f"password authentication failed.*{SEE}") as refused:
            append(home, b"never")
        done = cleaner.commit(staged)
    finally:
        change_password(database, DATABASE_SECRETS["the database's password"])

    assert "\n" not in str(refused.value)
    assert set(done.failed) == set(done.blameless) == {"users-0"}
    [log] = home.store.logs("users")
    assert (log.uncleanable, log.checkpoint) == (None, None)
    assert [record.value for _, record in home.read("users")] == [b"1", b"2"]


def change_password(database: Postgres, password: str) -> None:
    """That of the role ``lake``, whose connections are cut, as those of a pool are sooner or later."""
    with connected(database, "postgres") as connection, closing(connection.cursor()) as cursor:
        cursor.execute("alter role lake password %s", (password,))
        cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'lake'")


@dataclass(frozen=True)
class AskingStore:
    """A store that knows two users: ``writer`` may do all, ``stranger`` nothing."""

    endpoint: str
    keys: Mapping[str, tuple[str, str]]

    def settings(self, tmp_path: Path, key: str, secret: str) -> dict[str, str]:
        return {
            "TYPE": "sql",
            "URI": f"sqlite:///{tmp_path / 'catalog.db'}",
            "WAREHOUSE": f"s3://lake/{tmp_path.name}",
            "S3__ENDPOINT": self.endpoint,
            "S3__REGION": "us-east-1",
            "S3__ACCESS_KEY_ID": key,
            "S3__SECRET_ACCESS_KEY": secret,
        }


@pytest.fixture(scope="module")
def asking() -> Iterator[AskingStore]:
    with or_skip(s3_server()) as server:
        server.bucket("lake")
        iam = boto3.client(
            "iam",
            endpoint_url=server.endpoint,
            aws_access_key_id="someone",
            aws_secret_access_key="secret",  # noqa: S106  # nobody's
            region_name="us-east-1",
        )
        keys = {name: user(iam, name) for name in ("writer", "stranger")}
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="writer", PolicyName="all", PolicyDocument=policy)
        # From now on it asks.
        requests.post(f"{server.endpoint}/moto-api/reset-auth", b"0", timeout=10).raise_for_status()
        yield AskingStore(server.endpoint, keys)


def user(iam: Any, name: str) -> tuple[str, str]:
    iam.create_user(UserName=name)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    return made["AccessKeyId"], made["SecretAccessKey"]


WRONG = {
    "another secret key": "the store does not know these credentials",
    "a key that nobody has": "the store does not know these credentials",
    "somebody who may nothing": "access is denied",
}


def wrong_keys(asking: AskingStore, what: str) -> tuple[str, str]:
    if what == "somebody who may nothing":
        return asking.keys["stranger"]
    return (asking.keys["writer"][0] if what == "another secret key" else "AKIANOBODY"), GUESS


@pytest.mark.parametrize("what", WRONG)
def test_a_store_that_takes_no_such_keys(
    asking: AskingStore, keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    right = asking.settings(tmp_path, *asking.keys["writer"])
    given(monkeypatch, right)
    store = open_home().store
    store.create_topic("users", 1, CONFIG)
    append(open_home(), b"1")
    append(open_home(), b"2")
    (tmp_path / "records.jsonl").write_text('{"key": "k", "value": "never"}\n')
    key, secret = wrong_keys(asking, what)
    given(monkeypatch, asking.settings(tmp_path, key, secret))

    commands = ("topic list", "append users --file records.jsonl", "read users", "status", "purge users")
    outcomes = {command: keptlog(*command.split()) for command in commands}
    wrong = open_home()
    cleaner = replace(wrong.cleaner(), engine=in_process_engine(wrong.store.files))
    done = cleaner.commit(cleaner.stage(cleaner.begin((), new_id(), now_ms=NOW_MS, requested=False)))

    assert {command: each.code for command, each in outcomes.items()} == dict.fromkeys(commands, 1)
    for command in commands:
        told = outcomes[command].out + outcomes[command].err
        assert WRONG[what] in told, command
        assert f"s3://lake/{tmp_path.name}/" in told, command
        assert "Traceback" not in told
        assert found_in(told, {"the guess": GUESS, "the key": secret}) == []
    assert len(outcomes["append users --file records.jsonl"].err.splitlines()) == 1
    assert [WRONG[what] in str(error) for error in done.failed.values()] == [True]
    given(monkeypatch, right)
    [log] = open_home().store.logs("users")
    assert (log.uncleanable, log.checkpoint) == (None, None)
    assert [record.value for _, record in open_home().read("users")] == [b"1", b"2"]

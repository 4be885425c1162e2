"""A database's changes, appended and cleaned, leave what ``SELECT`` shows: row by row, every digit of every number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.lake.postgres import Postgres
from keptlog.errors import InvalidRecord
from keptlog.home import new_id, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.passes.clean import Cleaner
from keptlog.sources.files import FileSet, Reading
from keptlog.sources.formats import Format
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out, open_store
from tests.postgres.change_stream import Row
from tests.postgres.shop import COLUMNS, KEY, Shop, shop

TRANSACTIONS = 60
ROUNDS = 3
Rows = dict[tuple[str | None, ...], Row]
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": "0"}


@dataclass
class Customers:
    """The topic that the customers' changes go into."""

    store: LogStore
    folder: Path

    def append(self, lines: Iterable[bytes]) -> None:
        path = self.folder / f"{new_id()}.jsonl"
        path.write_bytes(b"".join(lines))
        now_ms = wall_clock_ms()
        reading = Reading(now_ms, Format.DEBEZIUM, tables="customers")
        self.store.append("customers", FileSet([str(path)], reading).records(), new_id(), now_ms)

    def delete_all(self) -> None:
        """What the refusal of a truncate says."""
        now_ms = wall_clock_ms()
        alive = self.store.read("customers", latest=True)
        nulls = [NewRecord(record.key, None, now_ms, partition) for partition, record in alive]
        self.store.append("customers", nulls, new_id(), now_ms)

    def clean(self) -> None:
        cleaner = Cleaner(self.store, in_process_engine(self.store.files))
        result = carry_out(cleaner, cleaner.plan(["customers"], now_ms=wall_clock_ms() + 10_000, requested=True))
        assert not result.failed

    def rows(self) -> Rows:
        """By key, each column as the text that it has in JSON."""
        rows: Rows = {}
        for _, record in self.store.read("customers", latest=True):
            assert record.key is not None
            assert record.value is not None
            key, row = (json.loads(each, parse_float=str, parse_int=str) for each in (record.key, record.value))
            row["is_new"] = row["is_new"] and {"t": "true", "f": "false"}[row["is_new"]]
            assert tuple(row) == COLUMNS
            rows[tuple(key[name] for name in KEY)] = row
        return rows


def differences(here: Rows, there: Rows) -> list[str]:
    """What a person wants to see of two states."""
    lines = [f"{key}: only here" for key in here.keys() - there.keys()]
    lines += [f"{key}: only there" for key in there.keys() - here.keys()]
    for key in here.keys() & there.keys():
        columns = [name for name in COLUMNS if here[key][name] != there[key][name]]
        lines += [f"{key} {name}: {here[key][name]!r:.40} here, {there[key][name]!r:.40} there" for name in columns]
    return lines


@pytest.fixture
def customers(tmp_path: Path) -> Customers:
    store = open_store(tmp_path / "home")
    store.create_topic("customers", 2, SETTINGS)
    return Customers(store, tmp_path)


def change(tables: Shop, number: int) -> None:
    tables.transactions(TRANSACTIONS)
    if number == 1:
        tables.execute("TRUNCATE CUSTOMERS")
        tables.transactions(TRANSACTIONS // 3)


@pytest.mark.parametrize(
    ("identity", "seed", "reselects"), [("FULL", 1, False), ("FULL", 2, False), ("DEFAULT", 3, True)]
)
def test_the_state_before_and_after_every_clean_is_what_select_shows(
    database: Postgres, customers: Customers, identity: str, seed: int, *, reselects: bool
) -> None:
    with shop(database, seed, identity) as tables:
        stream = tables.stream(reselects=reselects)
        for number in range(ROUNDS):
            change(tables, number)
            lines = [line for message in tables.messages() for line in stream.lines(message)]
            for some in between_truncates(lines):
                if some is None:
                    customers.delete_all()
                else:
                    customers.append(some)
            assert differences(customers.rows(), tables.rows()) == []
            customers.clean()
            assert differences(customers.rows(), tables.rows()) == []
        customers.clean()
        assert differences(customers.rows(), tables.rows()) == []
        assert sum(1 for _ in customers.store.read("customers")) == len(tables.rows()), "nothing else is left"


def test_a_row_that_lacks_a_large_value_does_not_supersede_the_one_that_has_it(
    database: Postgres, customers: Customers
) -> None:
    """The database tells a large value only when it changes, or with the row before."""
    large = "x" * 9000
    with shop(database, 4, "DEFAULT") as tables:
        stream = tables.stream()
        tables.execute("INSERT INTO CUSTOMERS (region, id, document) VALUES ('eu', 1, %s)", large)
        customers.append(line for message in tables.messages() for line in stream.lines(message))
        tables.execute("UPDATE CUSTOMERS SET note = 'n'")
        with pytest.raises(InvalidRecord, match=r"does not have the value of 'document', which did not change"):
            customers.append(line for message in tables.messages() for line in stream.lines(message))
        customers.clean()
        assert customers.rows()["eu", "1"]["document"] == large
        tables.execute("ALTER TABLE CUSTOMERS REPLICA IDENTITY FULL")
        tables.execute("UPDATE CUSTOMERS SET name = 'Ada'")
        customers.append(line for message in tables.messages() for line in stream.lines(message))
        assert differences(customers.rows(), tables.rows()) == []


def between_truncates(lines: Sequence[bytes]) -> list[list[bytes] | None]:
    """The lines before, between and behind truncates; null for each of those."""
    parts: list[list[bytes] | None] = []
    some: list[bytes] = []
    for line in lines:
        if (json.loads(line)["value"] or {}).get("op") == "t":
            parts += [some, None]
            some = []
        else:
            some.append(line)
    return [*parts, some]

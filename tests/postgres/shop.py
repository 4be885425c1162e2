"""A table of customers that random transactions change, beside another table with the same keys."""

# ruff: noqa: S608  # the names in these statements are our own

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2

from examples.lake.postgres import DATABASE, USER, Postgres
from tests.postgres.change_stream import ChangeStream, Row

COLUMNS = ("region", "id", "name", "price", "ratio", "is_new", "document", "picture", "note")
KEY = ("region", "id")
_TABLES = ("customers", "orders")
_REGIONS = ("eu", 'ü"s', "")
_NUMBERS = ("0", "1.10", "-0.00", "12345678901234567.89", "1e30", "NaN", "0.1", "-1e-9", "3")
_LARGE = 3000
_BY_KEY = "region = %s AND id = %s"


@dataclass
class Shop:
    """The two tables, in a schema of their own."""

    connection: Any
    schema: str
    chance: random.Random
    large_values: int = 0

    def create(self, identity: str) -> None:
        """Make the tables with this replica identity, and begin to keep their changes."""
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {self.schema}")
            for table in _TABLES:
                name = f"{self.schema}.{table}"
                cursor.execute(
                    f"CREATE TABLE {name} (region text, id integer, name text, price numeric, ratio double precision, "
                    "is_new boolean, document text, picture bytea, note text, PRIMARY KEY (region, id))"
                )
                for column in ("document", "picture"):
                    cursor.execute(f"ALTER TABLE {name} ALTER {column} SET STORAGE EXTERNAL")
                cursor.execute(f"ALTER TABLE {name} REPLICA IDENTITY {identity}")
            cursor.execute(f"CREATE PUBLICATION {self.schema} FOR TABLES IN SCHEMA {self.schema}")
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [self.schema])

    def transactions(self, count: int) -> None:
        """Some, of which some are rolled back, whole or in part."""
        for _ in range(count):
            with self.connection.cursor() as cursor:
                for _ in range(self.chance.randint(1, 4)):
                    is_saved = self.chance.random() < 0.2
                    if is_saved:
                        cursor.execute("SAVEPOINT here")
                    self._change(cursor)
                    if is_saved and self.chance.random() < 0.5:
                        cursor.execute("ROLLBACK TO here")
            if self.chance.random() < 0.15:
                self.connection.rollback()
            else:
                self.connection.commit()

    def execute(self, statement: str, *values: object) -> None:
        """A transaction of its own; ``CUSTOMERS`` is their table."""
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(statement.replace("CUSTOMERS", f"{self.schema}.customers"), values)

    def messages(self) -> list[bytes]:
        """What the slot has to tell since the last time."""
        options = "NULL, NULL, 'proto_version', '1', 'publication_names', %s"
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(
                f"SELECT data FROM pg_logical_slot_get_binary_changes(%s, {options})", [self.schema, self.schema]
            )
            return [bytes(data) for (data,) in cursor.fetchall()]

    def stream(self, *, reselects: bool = False) -> ChangeStream:
        """A reader of the messages."""
        return ChangeStream(DATABASE, dict.fromkeys(_TABLES, KEY), self._value_now if reselects else None)

    def rows(self) -> dict[tuple[str | None, ...], Row]:
        """The customers by their key, each column as its text, bytes in base64."""
        shown = ", ".join("encode(picture, 'base64')" if name == "picture" else f"{name}::text" for name in COLUMNS)
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {shown} FROM {self.schema}.customers")
            rows = [dict(zip(COLUMNS, row, strict=True)) for row in cursor.fetchall()]
        for row in rows:
            row["picture"] = row["picture"] and row["picture"].replace("\n", "")
        return {tuple(row[name] for name in KEY): row for row in rows}

    def _value_now(self, table: str, key: Row, column: str) -> str | None:
        with self.connection, self.connection.cursor() as cursor:
            where = " AND ".join(f"{name}::text = %s" for name in key)
            cursor.execute(f"SELECT {column}::text FROM {self.schema}.{table} WHERE {where}", list(key.values()))
            found = cursor.fetchone()
        return found[0] if found else None

    def _change(self, cursor: Any) -> None:
        table, key = f"{self.schema}.{self.chance.choice(('customers',) * 4 + ('orders',))}", self._key()
        kind = self.chance.choice(("insert", "insert", "update", "update", "update", "key", "delete"))
        if kind == "delete":
            cursor.execute(f"DELETE FROM {table} WHERE {_BY_KEY}", key)
        elif kind == "key":
            new, is_free = self._key(), f"NOT EXISTS (SELECT 1 FROM {table} WHERE {_BY_KEY})"
            statement = f"UPDATE {table} SET region = %s, id = %s WHERE {_BY_KEY} AND {is_free}"
            cursor.execute(statement, [*new, *key, *new])
        elif kind == "update":
            columns = self.chance.sample(COLUMNS[2:], self.chance.randint(1, 3))
            setting = ", ".join(f"{name} = %s" for name in columns)
            cursor.execute(f"UPDATE {table} SET {setting} WHERE {_BY_KEY}", [*map(self._value, columns), *key])
        else:
            places = ", ".join(["%s"] * len(COLUMNS))
            statement = f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES ({places}) ON CONFLICT DO NOTHING"
            cursor.execute(statement, [*key, *map(self._value, COLUMNS[2:])])

    def _key(self) -> list[Any]:
        return [self.chance.choice(_REGIONS), self.chance.randrange(8)]

    def _value(self, column: str) -> Any:
        if self.chance.random() < 0.15:
            return None
        self.large_values += 1
        large = f"{self.large_values} " + "x" * self.chance.choice((0, _LARGE))
        values: Mapping[str, Any] = {
            "name": self.chance.choice(("Ada", "", 'Ünï "q" \\ \n', "null")),
            "price": self.chance.choice(_NUMBERS),
            "ratio": self.chance.choice(_NUMBERS),
            "is_new": self.chance.random() < 0.5,
            "document": large,
            "picture": large.encode() + b"\x00\xff",
            "note": str(self.large_values),
        }
        return values[column]


@contextmanager
def shop(database: Postgres, seed: int, identity: str) -> Iterator[Shop]:
    """The tables, and a slot that ends with the block."""
    address = {"host": "127.0.0.1", "port": database.port, "user": USER, "dbname": DATABASE}
    with closing(psycopg2.connect(**address)) as connection:
        made = Shop(connection, f"shop_{identity.lower()}_{seed}", random.Random(seed))
        made.create(identity)
        yield made
        connection.rollback()
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_drop_replication_slot(%s)", [made.schema])

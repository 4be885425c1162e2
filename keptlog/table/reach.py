"""Turns what a catalog or a storage throws when it can't be reached into the one error that callers know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import RESTError
from requests.exceptions import RequestException
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from keptlog.errors import StorageUnavailable
from keptlog.storage.disk import refusal_of

OUT_OF_REACH: tuple[type[Exception], ...] = (OSError, SQLAlchemyError, sqlite3.Error, RESTError, RequestException)
"""A file, a database or a service did not do what was asked, or did not answer."""


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Run code that talks to catalog or storage; ``what`` begins the error's message.

    Raises:
        StorageUnavailable: it can't be reached.
    """
    try:
        yield
    except OUT_OF_REACH as error:
        why = disk_refusal_of(error)
        todo = f"the disk {why}, make room" if why else "check that it exists and can be reached"
        raise StorageUnavailable(f"{what}: {one_line(error)}; {todo}") from error


def disk_refusal_of(error: BaseException) -> str | None:
    """Why a disk, also that of SQLite's database, refuses for good; null if something else is wrong.

    SQLite rolls the transaction back, so nothing landed. It has words for this, and no numbers that SQLAlchemy shows.
    """
    text = str(error) if isinstance(error, OperationalError) else ""
    if "database or disk is full" in text:
        return "is full"
    return "can't be written to" if "readonly database" in text else refusal_of(error)


def one_line(error: BaseException) -> str:
    """The first line of an error, with its kind."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

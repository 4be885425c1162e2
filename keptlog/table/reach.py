"""Turns what a catalog or a storage throws when it can't be reached into the one error that callers know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import RESTError
from requests.exceptions import RequestException
from sqlalchemy.exc import SQLAlchemyError

from keptlog.errors import StorageUnavailable

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
        raise StorageUnavailable(f"{what}: {one_line(error)}; check that it exists and can be reached") from error


def one_line(error: BaseException) -> str:
    """The first line of an error, with its kind."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

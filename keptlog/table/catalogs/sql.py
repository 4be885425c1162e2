"""A SQL catalog as keptlog opens it: with an end to waiting from its first question on, and without guesses.

PyIceberg asks a database whether it has the catalog's tables, and the column that tells a view from a table. It takes
any failure for a no. Where only the answer was lost, it would go on without that column for as long as the process
lives: views would be among the topics, and what it makes would have no type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import OperationalError
from typing_extensions import override

from keptlog.table.catalogs.configuration import sqlite_file
from keptlog.table.waiting.database_answers import answer_in_time
from keptlog.table.waiting.reach import tell_connections, tell_half_done

_NOT_THERE = ("no such table", "no such column", "doesn't exist", "does not exist", "unknown column")
"""What databases say to a name that they lack; PostgreSQL's client has an error of its own for that."""


class PatientSqlCatalog(SqlCatalog):
    """That of any database."""

    @override
    def _init_catalog(self) -> None:
        tell_connections(self.engine)
        if database := sqlite_file(self.properties):
            tell_half_done(self.engine, database)
        answer_in_time(self.engine)
        with failures_told(self.engine):
            super()._init_catalog()


class _Failed(Exception):
    """Goes through whoever catches what a database says."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def failures_told(engine: Engine) -> Iterator[None]:
    """Around PyIceberg's questions: a failure that is no answer ends them, and is raised."""

    def told(context: ExceptionContext) -> BaseException | None:
        # There is none until another listener has made one (``tell_connections``).
        error = getattr(context, "chained_exception", None) or context.sqlalchemy_exception
        return _Failed(error) if isinstance(error, OperationalError) and not _is_answer(error) else None

    event.listen(engine, "handle_error", told)
    try:
        yield
    except _Failed as failed:
        raise failed.error from failed
    finally:
        event.remove(engine, "handle_error", told)


def _is_answer(error: OperationalError) -> bool:
    return any(words in str(error.orig).lower() for words in _NOT_THERE)

"""An end to waiting for a database that has taken what it was asked, and does not answer.

    stopped, or its machine gone without a word        the connection stays open, and libpq reads from it for ever
    somebody else holds a lock on the catalog's tables  the same

A client of PostgreSQL's has no time limit for that. TCP's own does not see a server that was stopped, and what a
connection asks of the server at its start is refused by proxies such as PgBouncer. So the connection is ended from
here when the time is up: whoever waits is told at once, and by the pool's next connection whether anybody is there.
What was asked may have been done. It is a failure without an answer, and a commit is looked for (``commit``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from collections.abc import Callable, Iterator
from threading import Event, Timer
from typing import Any

from sqlalchemy import Engine

DATABASE_SECONDS = 30.0
"""As long as a commit to SQLite waits for those of others: what is asked is a row, or some."""
NO_ANSWER = "the database did not answer within"
_BY_CURSOR = ("do_execute", "do_execute_no_params", "do_executemany")
_BY_CONNECTION = ("do_ping", "do_commit", "do_rollback")
"""With those above all through which SQLAlchemy asks a database for an answer: what each is given first."""


def answer_in_time(engine: Engine) -> None:
    """From now on the engine's database answers in time, or is told as one that did not.

    A client that shows nobody its socket is left as it is.
    """
    for name in (*_BY_CURSOR, *_BY_CONNECTION):
        call = getattr(engine.dialect, name)
        setattr(engine.dialect, name, _in_time(engine, call, by_cursor=name in _BY_CURSOR))


def _in_time(engine: Engine, call: Callable[..., Any], *, by_cursor: bool) -> Callable[..., Any]:
    @functools.wraps(call)
    def in_time(asked: Any, *arguments: Any, **named: Any) -> Any:
        with _ended_if_late(asked.connection if by_cursor else asked) as is_late:
            try:
                return call(asked, *arguments, **named)
            except Exception as error:
                if not is_late.is_set() or engine.dialect.dbapi is None:
                    raise
                raise engine.dialect.dbapi.OperationalError(f"{NO_ANSWER} {DATABASE_SECONDS:g} s") from error

    return in_time


@contextlib.contextmanager
def _ended_if_late(connection: Any) -> Iterator[Event]:
    """Shut a connection's socket when the time is up; the event says whether it was."""
    is_late = Event()
    own = _same_socket(connection)
    if own is None:
        yield is_late
        return

    def end() -> None:
        is_late.set()
        with contextlib.suppress(OSError):  # just closed
            own.shutdown(socket.SHUT_RDWR)

    timer = Timer(DATABASE_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()
        own.close()


def _same_socket(connection: Any) -> socket.socket | None:
    """The connection's socket, under a number of our own: that of a closed one may be another's a moment later."""
    try:
        return socket.socket(fileno=os.dup(connection.fileno()))
    except Exception:  # noqa: BLE001  # closed, or a client that has none: each has an error of its own for that
        return None

"""Turns what a catalog or a storage throws when it can't be reached into the one error that callers know.

What was asked of it may have been a change. Then there are three kinds of failure (``failure_of``):

    refused      who answers says no, and will say it again: a permission, a credential, a full disk      nothing done
    not sent     nobody was there to take it, or he was too busy: no connection, a lock, "too many"       nothing done
    unknown      it was sent, and no answer that means anything came back                                 perhaps done

To try again is of no use with the first, safe with the second, and with the third only for whoever looks before. In
doubt a failure is unknown: who calls it not sent may delete what a commit has just made live. For the same reason the
word of a refusal is not enough where it came over HTTP (``is_sure``).
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    OAuthError,
    RESTError,
    TooManyRequestsError,
    UnauthorizedError,
)
from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError, SQLAlchemyError

from keptlog.disk import IN_THE_WAY, refusal_of
from keptlog.errors import StorageUnavailable
from keptlog.foreign_json import json_value
from keptlog.storage.refusal import store_refusal_of
from keptlog.table.waiting.database_answers import NO_ANSWER
from keptlog.table.waiting.half_done import half_done
from keptlog.table.waiting.reaching import HELD, one_line
from keptlog.table.waiting.sqlite_failures import (
    OF_HALF_DONE,
    disk_refusal_of,
    is_damaged,
    is_locked,
    is_unopened,
    was_moved,
)

if TYPE_CHECKING:
    from requests import HTTPError, RequestException, Response

OUT_OF_REACH: tuple[type[Exception], ...] = (OSError, SQLAlchemyError, sqlite3.Error, RESTError)
"""A file, a database or a service did not do what was asked, or did not answer; those of HTTP are OSErrors.

The client for HTTP is imported when something has failed, and not before: most catalogs need none.
"""

_REFUSED = (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    OAuthError,
    UnauthorizedError,
    ProgrammingError,
)
_REFUSED_BY_DATABASE = (
    "authentication failed",
    "no pg_hba.conf entry",
    "permission denied",
    "Access denied",
    "not permitted to log in",
    "not currently accepting connections",
)
_BUSY = {408, 423, 425, 429}
"""HTTP's words for later."""
_BUSY_BY_DATABASE = (
    "too many clients",
    "too many connections",
    "no more connections allowed",
    "remaining connection slots",
    "is starting up",
    "is in recovery mode",
    "is shutting down",
)
_LATER = "it can't do that now: try again in a while"
_UNSUPPORTED = {HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.NOT_IMPLEMENTED}
"""Iceberg's answer for what a catalog can't do, and HTTP's."""
_JAVA_S_UNSUPPORTED = {"UnsupportedOperationException", "NotImplementedException", "NotSupportedException"}
"""The same, as servers say it that don't expect it: with a 500."""
_ALLOW = "see to its permissions and credentials"
_UNTRUSTED = (
    "its certificate is not trusted: let this machine trust who signed it, and name the file of that authority in "
    "REQUESTS_CA_BUNDLE for a catalog, in AWS_CA_BUNDLE for a store; Spark's executors need the latter too"
)
_OF_TLS = {
    "CERTIFICATE_VERIFY_FAILED": _UNTRUSTED,
    "curlCode: 60": _UNTRUSTED,
    "WRONG_VERSION_NUMBER": "it speaks no TLS at this port: correct the port, or write http:// if it is to be reached "
    "without TLS",
}
"""OpenSSL's words, which every client but Arrow's quotes, and that one's number; and what to do."""


class FailureKind(Enum):
    """What a failure means for a change that was asked for."""

    REFUSED = auto()
    NOT_SENT = auto()
    UNKNOWN = auto()


_BY_STATE: Mapping[str, tuple[FailureKind, str]] = {
    "25006": (FailureKind.NOT_SENT, "its database takes no writes: if it stands by for another one, give that address"),
    "40001": (FailureKind.NOT_SENT, _LATER),
    "40P01": (FailureKind.NOT_SENT, _LATER),
    "53100": (FailureKind.REFUSED, "make room on the disk of its database"),
    "53200": (FailureKind.NOT_SENT, _LATER),
    "55P03": (FailureKind.NOT_SENT, _LATER),
    "57014": (FailureKind.NOT_SENT, _LATER),
}
"""PostgreSQL's answers to a statement that it has not carried out: it takes the whole transaction back, also if it says
so of the COMMIT. Read-only, two that met, a full disk, no memory, a lock or an answer that took too long."""


class ToldFailure(OSError):
    """A failure of a client whose errors only its own module can read; that says what it means."""

    def __init__(self, text: str, kind: FailureKind, *, is_answer: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.is_answer = is_answer
        """Whether something on the way has answered."""


class NotConnected(OperationalError):
    """There was no connection to the database: nothing was sent to it."""


def unavailable(what: str, error: Exception) -> StorageUnavailable:
    """One of ``OUT_OF_REACH`` as callers know it; ``what`` begins its message."""
    disk = disk_refusal_of(error) or refusal_of(error)
    if disk:
        # SQLite has several words for that, to be looked up.
        quoted = f" (SQLite says {str(getattr(error, 'orig', error))!r})" if disk is OF_HALF_DONE else ""
        text = f"{what}: the disk{_place_of(error)} {disk.why}{quoted}: {disk.remedy}"
    else:
        text = f"{what}: {store_refusal_of(error) or one_line(error)}; {todo_about(error)}"
    told = StorageUnavailable(text)
    if is_damaged(error):
        return told.of_damage()
    return told.for_good() if failure_of(error) is FailureKind.REFUSED else told


def _place_of(error: Exception) -> str:
    """Which disk it is, as far as the error says it; the words of the error say no more than the refusal."""
    if isinstance(error, OSError):
        return f" of {error.filename}" if isinstance(error.filename, str | Path) else ""
    return " of the catalog's database"


def todo_about(error: Exception) -> str:
    """What to do about a failure, in words that end a line; an object store's refusal has said it already."""
    if store_refusal_of(error):
        return "try again then"
    if is_damaged(error):
        return "the catalog's database is damaged: put it back from a backup"
    if is_unsupported(error):
        return "this catalog can't do it: keptlog doctor --catalog says what follows"
    told = _told_todo(error)
    if told:
        return told
    room = ", and that its disk has room for one more file (df -i)" if is_unopened(error) else ""
    return _ALLOW if failure_of(error) is FailureKind.REFUSED else f"check that it exists and can be reached{room}"


def _told_todo(error: Exception) -> str | None:
    """What to do where a disk, a database, a catalog or TLS says itself what is in the way."""
    by_database = _by_state(error)
    if by_database:
        return by_database[1]
    of_tls = next((todo for words, todo in _OF_TLS.items() if words in str(error)), None)
    if of_tls:
        return of_tls
    if is_locked(error):
        return HELD
    if isinstance(error, BadRequestError):
        return "it does not take this request; its message says why"
    if isinstance(error, IN_THE_WAY):
        return "something else has the place of a file or folder: move it away, and put back what was there"
    return _LATER if _is_busy(error) else None


def failure_of(error: Exception) -> FailureKind:
    """What an error means for the change that met it; it is one of ``OUT_OF_REACH``."""
    from requests.exceptions import HTTPError, RequestException  # noqa: PLC0415  # as said above

    if isinstance(error, ToldFailure):
        return error.kind
    if disk_refusal_of(error) or isinstance(error, _REFUSED):
        return FailureKind.REFUSED
    if isinstance(error, RESTError | HTTPError):
        return _of_answer(error)
    if isinstance(error, RequestException):
        return FailureKind.NOT_SENT if _is_without_connection(error) else FailureKind.UNKNOWN
    if isinstance(error, DBAPIError):
        return _of_database(error)
    is_of_disk = isinstance(error, OSError) and error.errno in {errno.EACCES, errno.EPERM}
    is_refused = store_refusal_of(error) or is_of_disk or isinstance(error, IN_THE_WAY)
    return FailureKind.REFUSED if is_refused else FailureKind.UNKNOWN


def is_sure(error: Exception) -> bool:
    """Whether the change that met this failure was surely not made; else it is looked at what became of it.

    A database or a disk says itself what it has not done. An answer of HTTP may be that of somebody who stands before a
    catalog and has passed on what he then says no to, or of the catalog to a request that he sent twice.
    """
    from requests.exceptions import HTTPError  # noqa: PLC0415  # as said above

    is_answer = isinstance(error, RESTError | HTTPError) or (isinstance(error, ToldFailure) and error.is_answer)
    return not is_answer and failure_of(error) is not FailureKind.UNKNOWN


def was_silent(error: BaseException) -> bool:
    """Whether it was waited for an answer until the time for it was up."""
    from requests.exceptions import ReadTimeout  # noqa: PLC0415  # as said above

    return isinstance(error, ReadTimeout) or (isinstance(error, DBAPIError) and NO_ANSWER in str(error.orig))


def _of_answer(error: RESTError | HTTPError) -> FailureKind:
    """Of an answer of HTTP: what begins with 4 was not done; a 5 may come from a proxy, when it was."""
    if _is_busy(error):
        return FailureKind.NOT_SENT
    is_refused = 400 <= _status_of(error) < 500 or is_unsupported(error)
    return FailureKind.REFUSED if is_refused else FailureKind.UNKNOWN


def _is_busy(error: BaseException) -> bool:
    """Whether a catalog is there, and says "later"."""
    if isinstance(error, NotConnected):
        return any(word in str(error) for word in _BUSY_BY_DATABASE)
    return isinstance(error, TooManyRequestsError) or _status_of(error) in _BUSY


def _status_of(error: BaseException) -> int:
    """Of an answer of HTTP; 0 for what is none."""
    from requests.exceptions import HTTPError  # noqa: PLC0415  # as said above

    answer = error if isinstance(error, HTTPError) else error.__cause__
    return answer.response.status_code if isinstance(answer, HTTPError) and answer.response is not None else 0


def is_unsupported(error: BaseException | None) -> bool:
    """Whether a catalog says that it can't do this at all, whoever asks for it and how often."""
    from requests.exceptions import HTTPError  # noqa: PLC0415

    while error is not None and not isinstance(error, HTTPError):
        error = error.__cause__
    if error is None or error.response is None:
        return False
    return error.response.status_code in _UNSUPPORTED or _type_in(error.response) in _JAVA_S_UNSUPPORTED


def _type_in(answer: Response) -> str:
    """The error's type, where a catalog has said it; a proxy that answers for it does not."""
    try:
        return str(json_value(answer.content)["error"]["type"])
    except (ValueError, LookupError, TypeError):
        return ""


def _is_without_connection(error: RequestException) -> bool:
    from requests.exceptions import ConnectionError as HttpConnectionError  # noqa: PLC0415
    from requests.exceptions import ConnectTimeout, ProxyError  # noqa: PLC0415
    from urllib3.exceptions import ConnectTimeoutError, MaxRetryError  # noqa: PLC0415

    if isinstance(error, ConnectTimeout | ProxyError):
        return True
    cause = error.args[0] if isinstance(error, HttpConnectionError) and error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(cause.reason, ConnectTimeoutError)


def _of_database(error: DBAPIError) -> FailureKind:
    """SQLite says that it is locked, that its file was moved, or that it can't open one: nothing landed."""
    if isinstance(error, NotConnected) and any(word in str(error) for word in _REFUSED_BY_DATABASE):
        return FailureKind.REFUSED
    by_database = _by_state(error)
    if by_database:
        return by_database[0]
    is_unsent = is_locked(error) or was_moved(error) or is_unopened(error) or isinstance(error, NotConnected)
    return FailureKind.NOT_SENT if is_unsent else FailureKind.UNKNOWN


def _by_state(error: BaseException) -> tuple[FailureKind, str] | None:
    """What PostgreSQL's code of an error means, and what to do; null for one that may have come after all was done."""
    raw = error.orig if isinstance(error, DBAPIError) else None
    state = getattr(raw, "pgcode", None) or getattr(raw, "sqlstate", None)  # psycopg2's name, and psycopg's
    return _BY_STATE.get(str(state))


def tell_connections(engine: Engine) -> None:
    """From now on a failure to connect is ``NotConnected``; SQLAlchemy has one error for that and for a lost answer."""

    def told(context: ExceptionContext) -> BaseException | None:
        error = context.sqlalchemy_exception
        # Of one that is only tried SQLAlchemy makes another, unless it is told of anything else.
        is_tried = context.connection is not None or context.is_pre_ping
        if is_tried or not isinstance(error, DBAPIError) or error.orig is None:
            return None
        return NotConnected(error.statement, error.params, error.orig)

    event.listen(engine, "handle_error", told)


def tell_half_done(engine: Engine, database: Path) -> None:
    """From now on what SQLite says of this file is ``HalfDone`` where a writer has died in a commit of it."""

    def told(context: ExceptionContext) -> BaseException | None:
        found = half_done(context.original_exception, database)
        if found is None:
            return None
        failed = OperationalError(context.statement, None, found)
        failed.args = (found.in_words,)  # SQLAlchemy would quote the name of the class
        return failed

    event.listen(engine, "handle_error", told)


@contextmanager
def connecting() -> Iterator[None]:
    """Around what makes the first connection, before anybody could ``tell_connections``."""
    try:
        yield
    except OperationalError as error:
        if error.statement is not None or error.orig is None:
            raise
        raise NotConnected(error.statement, error.params, error.orig) from error

"""What all commands share: how they find the home and the clock, and how they print."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import click

from keptlog.cli.arguments import not_empty
from keptlog.cli.colour import Wrong, wrong
from keptlog.cli.narrow import GAP, fitted, room
from keptlog.errors import Action, InvalidConfig, KeptlogError
from keptlog.log.given.given_time import NOW_MS, as_of, given_now_ms
from keptlog.log.run_id import valid_run_id
from keptlog.log.words.advice import CREATE_TOPIC
from keptlog.log.words.counted import some_of
from keptlog.log.words.harmless import harmless
from keptlog.progress import Progress, silent
from keptlog.settings import home_path
from keptlog.streams import closed_streams

EXIT_FAILED = 1
"""Something was found, or failed."""
EXIT_BAD_INPUT = 2
SCHEMA_VERSION = 1
"""Of what ``--json`` prints: another number once a field goes or changes its meaning; new fields change nothing."""
_NAMED = 3
"""So many of those that failed of the same are named."""
_SURROGATE = re.compile("[\\ud800-\\udfff]")
_has_answered: ContextVar[bool] = ContextVar("has_answered", default=False)

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=lambda _context, _option, as_json: require_open_for(as_json),
    help="Print JSON for scripts instead of text.",
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")
run_id_option = click.option(
    "--run-id",
    metavar="ID",
    callback=lambda context, option, run_id: not_empty(context, option, run_id) and valid_run_id(run_id),
    help="Name this run. What was done before under the same name is not done twice.",
)


def wall_clock_ms() -> int:
    """Now, whatever time is given."""
    return time.time_ns() // 1_000_000


def clock_ms() -> int:
    """Now, or ``KEPTLOG_NOW_MS``, which is then told once on stderr.

    Raises:
        InvalidConfig: the variable holds no time.
    """
    given_ms = given_now_ms(os.environ.get(NOW_MS))
    if given_ms is None:
        return wall_clock_ms()
    context = click.get_current_context(silent=True)
    told: set[int] = context.find_root().meta.setdefault(NOW_MS, set()) if context else set()
    if given_ms not in told:
        told.add(given_ms)
        click.echo(f"keptlog: {as_of(given_ms)}", err=True)
    return given_ms


def is_time_given() -> bool:
    """Whether ``clock_ms`` is a time that somebody gave."""
    return given_now_ms(os.environ.get(NOW_MS)) is not None


def print_json(answer: Mapping[str, Any], failed: Mapping[str, KeptlogError] | None = None) -> None:
    """The one JSON document that a command prints; ``failed`` is what went wrong beside the answer, by its subject.

    What stands in it is declared in ``keptlog.cli.answers``, and documented in docs/json.md.
    """
    errors = [error_row(type(error).__name__, str(error), error.action, name) for name, error in (failed or {}).items()]
    _print_document({**answer, "errors": errors})


def print_json_errors(*errors: Mapping[str, object]) -> None:
    """The same where nothing but errors is the answer; nothing if there was an answer already."""
    if not _has_answered.get():
        _print_document({"errors": errors})


def answer_is_no_document() -> None:
    """From now on stdout is something else than the document of docs/json.md: records, or a file as it is stored."""
    _has_answered.set(True)


def require_stdout(what: str = "records") -> None:
    """For commands of which something goes to standard output: who has closed it would take that for written.

    Raises:
        InvalidConfig: it is closed.
    """
    if "stdout" in closed_streams():
        raise InvalidConfig(f"{what} go to standard output, and that is closed: open it")


def require_open_for(as_json: bool) -> bool:  # noqa: FBT001  # a value of click's
    """Whether JSON is asked for, which a program is to read: with nothing to read there, 0 would be no answer.

    Raises:
        InvalidConfig: it is asked for, and standard output is closed.
    """
    if as_json:
        require_stdout("answers as JSON")
    return as_json


def begin_answer() -> None:
    """Nothing was printed yet; a process may run several commands."""
    _has_answered.set(False)


def _print_document(document: Mapping[str, Any]) -> None:
    _has_answered.set(True)
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, ensure_ascii=False)
    # A byte of a path that is no UTF-8 would be printed as it is, and no JSON has it.
    click.echo(_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def error_row(kind: str, message: str, action: Action, subject: str | None = None) -> dict[str, object]:
    """An error of such a document; null as its subject is the whole command."""
    return {"kind": kind, "subject": subject, "message": " ".join(message.split()), "action": action.value}


def print_table(rows: Sequence[Mapping[str, object]], *, empty: str, expendable: Sequence[str] = ()) -> Sequence[str]:
    """Rows under their column names, columns as wide as they need; ``empty`` if there are none.

    A terminal that is too narrow for them gets the ``expendable`` columns, the first one first, only on request: those
    that it did not get are returned.
    """
    if not rows:
        click.echo(empty)
        return ()
    columns = list(rows[0])
    cells = [columns, *[[_cell(row[column]) for column in columns] for row in rows]]
    width, note = room(), None
    if width:
        cells, note = fitted(cells, width, expendable)
        columns = cells[0]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    numeric = [all(isinstance(row[column], int | float) or row[column] is None for row in rows) for column in columns]
    click.echo(GAP.join(_padded(columns, widths, numeric)).rstrip())
    for row, line in zip(rows, cells[1:], strict=True):
        padded = _padded(line, widths, numeric)
        # Spaces behind the last word are none of it.
        padded[-1] = padded[-1].rstrip()
        shown = [
            wrong(cell) if isinstance(row[column], Wrong) else cell
            for column, cell in zip(columns, padded, strict=True)
        ]
        click.echo(GAP.join(shown).rstrip())
    if note:
        click.echo(note)
    return [head for head in rows[0] if head not in columns]


def _padded(line: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    return [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(line, widths, numeric, strict=True)
    ]


def as_columns(row: Mapping[str, object]) -> dict[str, object]:
    """A row of JSON as a row of a table: ``topic_partition`` is ``topic-partition``, ``log_end`` is ``log end``."""
    return {name.replace("_", " ").replace("topic partition", "topic-partition"): row[name] for name in row}


def require_topics_here() -> None:
    """Refuse to look at a home in which no topic was ever created; for commands that look at all topics.

    Raises:
        InvalidConfig: there is none; it names the home.
        StorageUnavailable: there was one, and its catalog is lost.
    """
    # Importing it looks at PyIceberg's configuration, and this module is imported before any error is told.
    from keptlog.table.catalogs.home_folder import require_home  # noqa: PLC0415

    require_home(home_path())


def no_topics(unreadable: Mapping[str, KeptlogError]) -> str:
    """What stands in place of an empty table; topics that can't be looked at are not to be taken for none."""
    if unreadable:
        return "no topic can be looked at"
    return f"no topics in home {home_path()}: {CREATE_TOPIC}"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else harmless(str(value))


def tell_wrong(line: str) -> None:
    """One line on stderr about what is wrong, or went wrong."""
    click.echo(f"{wrong('keptlog:')} {harmless(' '.join(line.split()))}", err=True)


def tell_read_only(why: str | None, failed: Mapping[str, KeptlogError]) -> None:
    """Why nothing may be changed in this home, if that is so, and none of what failed says it already."""
    if why and why not in map(str, failed.values()):
        click.echo(f"keptlog: {why}", err=True)


def exit_if_copied(copied: str | None, unknown: InvalidConfig, *, as_json: bool) -> None:
    """In a copy of a home, say of what it does not know that its original may: that is no bad input."""
    if copied is None:
        return
    text = f"{unknown}; this copy does not know what came since it was made: {copied}"
    text = str(unknown) if unknown.is_outlived_copy else text
    if as_json:
        print_json_errors(error_row(type(unknown).__name__, text, unknown.action))
    tell_wrong(text)
    sys.exit(EXIT_FAILED)


def exit_if_failed(failed: Mapping[str, KeptlogError], code: int = EXIT_FAILED) -> None:
    """One line on stderr for each log that failed, and exit code 1, or this one, if there is one.

    What is wrong with all of them, as with a home that was moved, is one line.
    """
    by_text: dict[str, list[str]] = {}
    for name, error in failed.items():
        by_text.setdefault(" ".join(str(error).split()), []).append(name)
    for text, names in by_text.items():
        tell_wrong(text if text.startswith(f"{names[0]}:") else f"{some_of(names, _NAMED)}: {text}")
    if failed:
        sys.exit(code)


def progress_to_stderr(*, quiet: bool) -> Progress:
    """Where long work says what it is doing."""
    return silent if quiet else (lambda line: click.echo(harmless(line), err=True))

"""What all commands share: how they find the home and the clock, and how they print."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from keptlog.errors import KeptlogError
from keptlog.log.given_time import NOW_MS, as_of, given_now_ms
from keptlog.log.run_id import valid_run_id
from keptlog.progress import Progress, silent
from keptlog.settings import home_path

EXIT_FAILED = 1
"""Something was found, or failed."""
EXIT_BAD_INPUT = 2
_NAMED = 3
"""So many of those that failed of the same are named."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts instead of text.")
quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")
run_id_option = click.option(
    "--run-id",
    metavar="ID",
    callback=lambda _context, _option, run_id: run_id and valid_run_id(run_id),
    help="Name this run. What was done before under the same name is not done twice.",
)


def clock_ms() -> int:
    """Now, or ``KEPTLOG_NOW_MS``, which is then told once on stderr.

    Raises:
        InvalidConfig: the variable holds no time.
    """
    given_ms = given_now_ms(os.environ.get(NOW_MS))
    if given_ms is None:
        return time.time_ns() // 1_000_000
    context = click.get_current_context(silent=True)
    told: set[int] = context.find_root().meta.setdefault(NOW_MS, set()) if context else set()
    if given_ms not in told:
        told.add(given_ms)
        click.echo(f"keptlog: {as_of(given_ms)}", err=True)
    return given_ms


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(rows: Sequence[Mapping[str, object]], *, empty: str) -> None:
    """Rows under their column names, columns as wide as they need; ``empty`` if there are none."""
    if not rows:
        click.echo(empty)
        return
    columns = list(rows[0])
    cells = [columns, *[[_cell(row[column]) for column in columns] for row in rows]]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    numeric = [all(isinstance(row[column], int | float) or row[column] is None for row in rows) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    ]
    click.echo("\n".join(lines))


def require_topics_here() -> None:
    """Refuse to look at a home in which no topic was ever created; for commands that look at all topics.

    Raises:
        InvalidConfig: there is none; it names the home.
        StorageUnavailable: there was one, and its catalog is lost.
    """
    # Importing it looks at PyIceberg's configuration, and this module is imported before any error is told.
    from keptlog.table.home_folder import require_home  # noqa: PLC0415

    require_home(home_path())


def no_topics(unreadable: Mapping[str, KeptlogError]) -> str:
    """What stands in place of an empty table; topics that can't be read are not to be taken for none."""
    if unreadable:
        return "no topic can be read"
    return f"no topics in home {home_path()}: keptlog topic create TOPIC --config cleanup.policy=compact"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def exit_if_failed(failed: Mapping[str, KeptlogError]) -> None:
    """One line on stderr for each log that failed, and exit code 1 if there is one.

    What is wrong with all of them, as with a home that was moved, is one line.
    """
    by_text: dict[str, list[str]] = {}
    for name, error in failed.items():
        by_text.setdefault(" ".join(str(error).split()), []).append(name)
    for text, names in by_text.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        told = f"{', '.join(names[:_NAMED])}{more}"
        click.echo(f"keptlog: {text if text.startswith(f'{names[0]}:') else f'{told}: {text}'}", err=True)
    if failed:
        sys.exit(EXIT_FAILED)


def progress_to_stderr(*, quiet: bool) -> Progress:
    """Where long work says what it is doing."""
    return silent if quiet else (lambda line: click.echo(line, err=True))


def size(count_bytes: int) -> str:
    """Bytes for a person."""
    amount, units = float(count_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{int(amount)} {units[0]}" if units[0] == "B" else f"{amount:.1f} {units[0]}"

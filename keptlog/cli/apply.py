"""``keptlog topic apply`` and ``export``: topics as code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from keptlog.cli.arguments import complete_file, complete_topic, none_empty, topic_names_argument
from keptlog.cli.asking import require_consent
from keptlog.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    answer_is_no_document,
    clock_ms,
    error_row,
    exit_if_failed,
    json_option,
    print_json,
    print_json_errors,
    require_stdout,
    require_topics_here,
    tell_wrong,
)
from keptlog.cli.purged import deletion_numbers, print_deletion, tell_what_goes
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.home import open_home
from keptlog.log.words.counted import counted
from keptlog.log.words.harmless import harmless
from keptlog.topics_file.reading import TopicsFile, load_topics, read_topics
from keptlog.topics_file.writing import as_data, as_yaml

if TYPE_CHECKING:
    from keptlog.passes.apply import Applied, PlannedChange, TopicsPlan
    from keptlog.table.store import LogStore

_STDIN = "-"
_LISTED = 10


@click.command(short_help="Bring the topics to what FILE declares of them.")
@click.argument("file", metavar="FILE", shell_complete=complete_file)
@click.option("--dry-run", is_flag=True, help="Show the differences, and change nothing.")
@click.option("--exit-code", is_flag=True, help="With --dry-run: exit with 1 if there are differences.")
@click.option(
    "--delete",
    multiple=True,
    metavar="TOPIC",
    callback=none_empty,
    help="Delete a topic too; may be repeated.",
    shell_complete=complete_topic,
)
@click.option("--yes", is_flag=True, help="Do not ask before topics are deleted. Required where there is no terminal.")
@json_option
def apply(  # noqa: PLR0913
    file: str, *, dry_run: bool, exit_code: bool, delete: Sequence[str], yes: bool, as_json: bool
) -> None:
    """Bring the topics to what FILE declares of them (- is standard input); docs/topics.md tells how it is written.

    Shows the differences and carries them out, a commit a topic. If anything in FILE can't be accepted, each such
    place is named with its line, and nothing is changed. Topics that FILE does not name are left alone. A topic that
    can't be read, or fails, stops no other; the same command again does what is left.

    \b
    keptlog topic apply topics.yaml --dry-run
    keptlog topic apply topics.yaml --delete users-old
    """
    if exit_code and not dry_run:
        raise InvalidConfig("--exit-code tells of differences that are left: give --dry-run with it")
    declared = _read(file)
    applier = open_home().applier
    plan = applier.plan(declared, delete)
    if plan.refused:
        _refuse(plan, as_json=as_json)
    if not as_json:
        _print_plan(plan)
    if dry_run or not yes:
        tell_what_goes(applier.store, plan.deletions)
    if dry_run:
        if as_json:
            print_json(_plan_numbers(plan) | {"not_tried": list(plan.not_tried)}, plan.failed)
        _tell_failed(plan.failed, plan.not_tried)
        sys.exit(EXIT_FAILED if exit_code and plan.has_differences else 0)
    if plan.deletions and not yes and not plan.is_outage:
        _confirm(plan, applier.store, is_stdin_taken=file == _STDIN)
    applied = applier.carry_out(plan, clock_ms(), lambda line: None if as_json else click.echo(line))
    _report(applied, as_json=as_json)


@click.command(short_help="Write the file that declares the topics as they are.")
@topic_names_argument
@json_option
def export(names: Sequence[str], *, as_json: bool) -> None:
    """Write the file that declares the topics as they are, all or some: for keptlog topic apply, here or elsewhere.

    \b
    keptlog topic export > topics.yaml
    """
    require_stdout("declarations")
    require_topics_here()
    topics, unreadable = open_home().applier.export(names)
    if as_json:
        answer_is_no_document()
        # YAML takes some characters for line breaks that JSON leaves as they are; all of those are escaped.
        click.echo(json.dumps(as_data(topics), indent=2))
    else:
        click.echo(as_yaml(topics), nl=False)
    exit_if_failed(unreadable)


def _read(file: str) -> TopicsFile:
    if file == _STDIN:
        return read_topics(sys.stdin.buffer.read(), "standard input")
    return load_topics(Path(file))


def _refuse(plan: TopicsPlan, *, as_json: bool) -> NoReturn:
    """A line for all that can't be accepted."""
    errors = []
    for each, line in zip(plan.refused, plan.refused_lines(), strict=True):
        tell_wrong(line)
        error = each.error or InvalidConfig(each.text)
        errors.append(error_row(type(error).__name__, line, error.action, f"{plan.where}:{each.line}"))
    if as_json:
        print_json_errors(*errors)
    sys.exit(EXIT_BAD_INPUT)


def _confirm(plan: TopicsPlan, store: LogStore, *, is_stdin_taken: bool) -> None:
    if is_stdin_taken:
        raise InvalidConfig("standard input holds the file, so nobody can be asked: give --yes to delete topics")
    from keptlog.table.catalogs.shared_warehouse import for_whom  # noqa: PLC0415  # the help opens no catalog

    names = ", ".join(plan.deletions)
    require_consent(f"delete {names} and all their records for good{for_whom(store.committer.catalog)}?")


def _print_plan(plan: TopicsPlan) -> None:
    for change in plan.changes:
        click.echo(f"{'+' if change.is_creation else '~'} {change.change.name}")
        for line in _lines(change):
            click.echo(f"    {line}")
    for name in plan.deletions:
        click.echo(f"- {name}, with all its records")
    for name in plan.gone:
        click.echo(f"{name} is not there: nothing to delete")
    if plan.undeclared:
        shown = [*plan.undeclared[:_LISTED], *(["…"] if len(plan.undeclared) > _LISTED else [])]
        click.echo(f"left alone, because {plan.where} does not name them: {harmless(', '.join(shown))}")
    created = sum(each.is_creation for each in plan.changes)
    click.echo(
        f"{created} to create, {len(plan.changes) - created} to alter, {len(plan.deletions)} to delete, "
        f"{counted(len(plan.unchanged), 'topic')} as declared"
    )


def _lines(planned: PlannedChange) -> Iterator[str]:
    """The differences of a topic, for people."""
    for each in planned.differences:
        after = planned.defaults.get(each.what, _in_one_line(each.after))
        before = planned.defaults_before.get(each.what, _in_one_line(each.before))
        was = "" if planned.is_creation else f"{before} -> "
        yield f"{each.what}: {was}{after}"
    for note in planned.notes:
        yield f"({note})"


def _in_one_line(text: str | None) -> str:
    return "none" if text is None else " ".join(text.split()) or "empty"


def _plan_numbers(plan: TopicsPlan) -> dict[str, object]:
    changes = [
        {
            "topic": each.change.name,
            "action": "create" if each.is_creation else "alter",
            "differences": [{"what": one.what, "before": one.before, "after": one.after} for one in each.differences],
            "notes": list(each.notes),
        }
        for each in plan.changes
    ]
    return {
        "changes": changes,
        "deletions": list(plan.deletions),
        "unchanged": list(plan.unchanged),
        "undeclared": list(plan.undeclared),
        "gone": list(plan.gone),
    }


def _report(applied: Applied, *, as_json: bool) -> None:
    if as_json:
        deletions = {name: deletion_numbers(each) for name, each in applied.deletions.items()}
        told = {"done": list(applied.done), "deleted": deletions}
        print_json(_plan_numbers(applied.plan) | told | {"not_tried": list(applied.not_tried)}, applied.failed)
    else:
        for deletion in applied.deletions.values():
            print_deletion(deletion)
    _tell_failed(applied.failed, applied.not_tried)


def _tell_failed(failed: Mapping[str, KeptlogError], not_tried: Sequence[str]) -> None:
    """What is not done, and exit code 1 if that is anything."""
    if not_tried:
        click.echo(f"keptlog: not tried, because catalog or storage did not answer: {', '.join(not_tried)}", err=True)
    exit_if_failed(failed)

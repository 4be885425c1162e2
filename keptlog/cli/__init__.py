"""The ``keptlog`` command: topics, records and cleaning passes from a terminal or a script.

Every command that has an answer takes ``--json`` (``answers.WITHOUT_JSON`` has the others). Exit codes: 0 fine; 1
something was found or failed; 2 the input can't be accepted, and nothing was changed; 130 somebody stopped it. An
error is one line on stderr that says what to do; progress goes to stderr too, so that stdout is only ever the answer.

Commands are imported when they are called: ``keptlog --help`` starts no Spark. Which module has which is said below.
What they share:

the home          ``unopened`` (who looks), ``opening`` (who changes), ``home_look``, ``patient`` (doctor)
what is typed     ``arguments``, ``groups``, ``completion``, ``erase_keys``; before what can't be undone: ``asking``
what is told      ``output``, ``answers`` (JSON), ``colour``, ``narrow``, ``log_lines``, ``holders``, ``obstacles``,
                  ``purged``, ``receipt_text``, ``erase_proposal``, ``ingest_result``
the process       ``own_process``, ``resident``, ``warm_up``
"""

from __future__ import annotations

import errno
import gc
import itertools
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from keptlog.cli.asking import Declined
from keptlog.cli.groups import LazyGroup
from keptlog.cli.log_lines import LEVELS, log_lines_to_stderr
from keptlog.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    begin_answer,
    error_row,
    print_json_errors,
    require_topics_here,
    tell_wrong,
)
from keptlog.cli.own_process import SERVER_STOPPED, ServerStopped, begin_command, begin_own_process
from keptlog.errors import Action, InvalidConfig, InvalidRecord, KeptlogError, UnknownTopic
from keptlog.extras import missing_extra
from keptlog.interrupted import EXIT_STOPPED, NOT_BEGUN, Interrupted, if_stopped, told_if_stopped, was_interrupted
from keptlog.log.given.given_time import NOW_MS, given_now_ms
from keptlog.streams import NotPrinted

_ALLOCATIONS_BETWEEN_COLLECTIONS = 200_000
"""Python's own 700 suit programs that go on: what a command makes lives until it ends, or needs no collector."""

_COMMANDS = {
    "topic": "keptlog.cli.topics:topic",
    "append": "keptlog.cli.append:append",
    "read": "keptlog.cli.records:read",
    "reader": "keptlog.cli.reader:reader",
    "restore": "keptlog.cli.restore:restore",
    "files": "keptlog.cli.files:files",
    "ingest": "keptlog.cli.ingest:ingest",
    "import": "keptlog.cli.import_logs:import_group",
    "plan": "keptlog.cli.inspection:plan",
    "explain": "keptlog.cli.inspection:explain",
    "history": "keptlog.cli.history:history",
    "status": "keptlog.cli.status:status",
    "verify": "keptlog.cli.verify:verify",
    "clean": "keptlog.cli.passes:clean",
    "expire": "keptlog.cli.passes:expire",
    "retain": "keptlog.cli.retention:retain",
    "delete-records": "keptlog.cli.retention:delete_records",
    "truncate": "keptlog.cli.truncate:truncate",
    "purge": "keptlog.cli.passes:purge",
    "erase": "keptlog.cli.erase:erase",
    "erasure": "keptlog.cli.erase:erasure",
    "receipt": "keptlog.cli.receipt:receipt",
    "repair": "keptlog.cli.repair:repair",
    "notify": "keptlog.cli.notify:notify",
    "metrics": "keptlog.cli.metrics:metrics",
    "doctor": "keptlog.cli.doctor:doctor",
    "spark-server": "keptlog.cli.spark_server:spark_server",
    "resident": "keptlog.cli.own_resident:resident",
    "spark-archive": "keptlog.cli.spark_archive:spark_archive",
    "spark-pack": "keptlog.cli.spark_pack:spark_pack",
    "completion": "keptlog.cli.completion:completion",
}


_SECTIONS = {
    "Topics and records": ("topic", "append", "read", "reader", "restore", "files", "ingest", "import"),
    "Cleaning": ("status", "plan", "explain", "clean", "expire", "retain", "delete-records", "truncate", "history"),
    "Gone for good, and the proof": ("purge", "erase", "erasure", "verify", "receipt"),
    "Operation": ("doctor", "repair", "notify", "metrics"),
    "This machine": ("spark-server", "resident", "spark-archive", "spark-pack", "completion"),
}
_OF_TOPICS = ("create", "list", "describe", "alter", "delete", "apply", "export", "register")
_ELSEWHERE = {name: f"topic {name}" for name in _OF_TOPICS}
_ELSEWHERE |= {"ls": "topic list", "show": "topic describe", "compact": "clean", "produce": "append", "consume": "read"}
"""What kafka-topics and others have, and people type."""


class _Commands(LazyGroup):
    """All commands; in the order of the tables above."""

    elsewhere = _ELSEWHERE
    lazy = _COMMANDS
    sections = _SECTIONS


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="keptlog")
@click.option(
    "--log-level",
    envvar="KEPTLOG_LOG_LEVEL",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="warning",
    show_default=True,
    help="Show log lines of this level and above on stderr.",
)
@click.pass_context
def cli(context: click.Context, log_level: str) -> None:
    """Kafka's log compaction for keyed changelog topics on a data lake.

    A topic is an Iceberg table, a segment one of its data files. `append` adds records, `plan` says what a clean would
    do now, `clean` does it, `retain` removes old segments, `purge` really deletes what was replaced.

    \b
    KEPTLOG_HOME            the folder that holds topics and catalog (default ./.keptlog)
    KEPTLOG_SPARK_MASTER    where Spark runs (default local[*]), or file: and the file that says it
    KEPTLOG_NOW_MS          judge as of this time instead of now, in ms since 1970; each command says so
    KEPTLOG_RESIDENT        off: commands are carried out by no resident (see keptlog resident)
    KEPTLOG_LOG_LEVEL       as --log-level

    \b
    Exit code 0: fine. 1: something was found or failed. 2: bad input, nothing changed. 130: stopped.
    """
    # Also for commands that judge nothing: who has set it means that it acts.
    given_now_ms(os.environ.get(NOW_MS))
    context.with_resource(log_lines_to_stderr(log_level))
    begin_command(context.invoked_subcommand)


def run() -> None:
    """Run the command line in a process of its own, or in a resident's fork, which is as good as one."""
    begin_own_process()
    main()


def main() -> None:
    """Run the command line; errors become one line and an exit code, and with ``--json`` a document too."""
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    begin_answer()
    if_stopped(NOT_BEGUN)
    try:
        code = cli.main(prog_name="keptlog", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        _fail(_usage(error), EXIT_BAD_INPUT, error)
    except (Declined, click.Abort, KeyboardInterrupt) as error:
        _stop(error)
    except KeptlogError as error:
        _refuse(_without_home(error) or error)
    except ModuleNotFoundError as error:
        told = missing_extra(error)
        if told is None:
            raise
        _fail(told, EXIT_BAD_INPUT, error)
    except NotPrinted as error:
        _end_without_answer(error)
    except OSError as error:
        # A disk that is full, say; whatever could be told better has been.
        _fail(_told(error), EXIT_FAILED, error, _action_of(error))
    except Exception:
        if not was_interrupted():
            raise
        _fail(told_if_stopped(), EXIT_STOPPED, Interrupted(), Action.RETRY)


def _stop(error: BaseException) -> NoReturn:
    """Somebody wants it to end. What is lost, or left to do, depends on what was under way."""
    if isinstance(error, Declined):
        _fail(str(error), EXIT_STOPPED, error)
    told = SERVER_STOPPED if isinstance(error, ServerStopped) else told_if_stopped()
    _fail(told, EXIT_STOPPED, error, Action.RETRY)


def _without_home(error: KeptlogError) -> KeptlogError | None:
    """Why a topic is not known here, if the home is not there at all."""
    if not isinstance(error, UnknownTopic) or error.is_elsewhere:
        return None
    try:
        require_topics_here()
    except KeptlogError as why:
        return why
    return None


def _refuse(error: KeptlogError) -> NoReturn:
    is_input = isinstance(error, InvalidConfig | InvalidRecord | UnknownTopic)
    _fail(str(error), EXIT_BAD_INPUT if is_input else EXIT_FAILED, error, error.action)


def _usage(error: click.ClickException) -> str:
    """The words of click, but for its name of the type, which is no sentence, and with what it leaves out."""
    told = error.format_message().replace("is not a valid integer range", "is not a whole number")
    told = told.replace("is not a valid integer.", "is not a whole number.")
    if isinstance(error, click.NoSuchOption) and error.option_name.removeprefix("-").isdigit():
        told += " Write -- before a number below 0."
    elif isinstance(error, click.NoSuchOption) and not error.option_name.startswith("--"):
        # Kafka allows a topic to be called so, and next commands name it as it is called.
        told += " If it begins a name, write all options first, then --, then the name."
    elif isinstance(error, click.NoSuchOption) and error.option_name == "--dry-run":
        told += " keptlog plan says what clean, expire and retain would do."
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{told} (see {context.command_path} --help)" if context else told


def _end_without_answer(error: NotPrinted) -> NoReturn:
    _drop_stdout()
    if not error.is_reader_gone:
        tell_wrong(
            f"the answer can't be printed: {error}; what was done by then stays done, so look before you run it again"
        )
    sys.exit(EXIT_FAILED)


def _drop_stdout() -> None:
    """What waits to be printed can't be; without this Python would try once more, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: OSError) -> str:
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the folder in which this was called is gone; change to another one"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; nothing is lost, mend that and try again"


def _action_of(error: OSError) -> Action:
    from keptlog.disk import stays_so  # noqa: PLC0415  # most commands never get here

    is_storage = stays_so(error) or error.errno == errno.EIO
    return Action.FIX_STORAGE if is_storage else Action.FIX_CONFIG


def _kind_of(error: BaseException) -> str:
    """What docs/json.md calls it: libraries have more names for it, and others with each version."""
    stopped = KeyboardInterrupt.__name__
    kinds = {click.ClickException: "UsageError", OSError: "OSError", click.Abort: stopped, KeyboardInterrupt: stopped}
    return next((name for kind, name in kinds.items() if isinstance(error, kind)), type(error).__name__)


def print_stopped(message: str) -> None:
    """What a command prints with ``--json`` that was stopped, if it has not answered by then."""
    _print_error(message, KeyboardInterrupt(), Action.RETRY)


def _fail(message: str, code: int, error: BaseException, action: Action = Action.FIX_CONFIG) -> NoReturn:
    tell_wrong(message)
    _print_error(message, error, action)
    sys.exit(code)


def _print_error(message: str, error: BaseException, action: Action) -> None:
    # It may be the command line itself that can't be understood.
    if "--json" in itertools.takewhile(lambda argument: argument != "--", sys.argv):
        try:
            print_json_errors(error_row(_kind_of(error), message, action))
        except (NotPrinted, OSError):  # stderr has it
            _drop_stdout()

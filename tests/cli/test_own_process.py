"""What libraries log of Ctrl-C is not told, and all else that they log is."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from keptlog.cli.own_process import silence_ctrl_c
from keptlog.interrupted import Interrupted

_LOGGERS = [
    logging.getLogger(),
    *(importlib.import_module(f"py4j.{name}").logger for name in ("java_gateway", "clientserver")),
]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = [list(each.filters) for each in _LOGGERS]
    silence_ctrl_c()
    yield
    for each, filters in zip(_LOGGERS, before, strict=True):
        each.filters[:] = filters


def _log_a_failed_goodbye(logger: logging.Logger, why: BaseException | None) -> None:
    try:
        try:
            if why:
                raise why
        finally:
            raise BrokenPipeError("Broken pipe")
    except BrokenPipeError:
        logger.exception("Exception occurred while shutting down connection")


@pytest.mark.parametrize("logger", _LOGGERS, ids=lambda each: each.name)
def test_only_what_came_of_ctrl_c_is_left_out(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    for why in (KeyboardInterrupt(), Interrupted()):
        _log_a_failed_goodbye(logger, why)
    assert caplog.messages == []
    for other in (None, ConnectionError()):
        _log_a_failed_goodbye(logger, other)
    logger.error("nobody answers")
    assert len(caplog.messages) == 3


def test_a_call_that_was_interrupted_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    logging.exception("KeyboardInterrupt while sending command.")  # noqa: LOG015, LOG004
    assert caplog.messages == []


_GIVEN_BACK = """
import sys
from keptlog.cli.own_process import begin_own_process
from keptlog.interrupted import Interrupted
from sqlalchemy import create_engine, event
begin_own_process()
engine = create_engine("sqlite://")
def interrupt(*_):
    raise Interrupted if sys.argv[1] == "ctrl-c" else LookupError("as ever")
event.listen(engine, "reset", interrupt)
try:
    engine.connect().close()
except KeyboardInterrupt:
    sys.exit(130)
"""


def _told_while_a_connection_is_given_back(why: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", _GIVEN_BACK, why], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_ctrl_c_while_a_connection_to_the_catalog_is_given_back_is_not_logged() -> None:
    assert _told_while_a_connection_is_given_back("ctrl-c") == (130, "")


def test_another_failure_while_a_connection_is_given_back_is_logged_as_ever() -> None:
    code, told = _told_while_a_connection_is_given_back("as ever")
    assert (code, told.startswith("Exception during reset or similar\n")) == (0, True)

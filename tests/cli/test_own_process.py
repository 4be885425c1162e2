"""What Spark's gateway logs of Ctrl-C is not told, and all else that it logs is."""

from __future__ import annotations

import importlib
import logging
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

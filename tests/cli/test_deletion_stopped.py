"""Ctrl-C in the deletion of a topic: from the moment on at which nobody finds the topic, not nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from keptlog.interrupted import STOPPED
from tests.cli.conftest import Run

_STOPPED_IN = """
import os, runpy, signal, sys
from keptlog.table.removal import deletion

def stop(*_):
    os.kill(os.getpid(), signal.SIGINT)

def stop_behind(take_out):
    return lambda self: (take_out(self), stop())

step = sys.argv.pop(1)
if step == "looked at":
    deletion.Deletion._require_own_folder = stop
elif step == "taken out":
    deletion.Deletion._take_out = stop_behind(deletion.Deletion._take_out)
elif step == "looked for":
    deletion.Deletion._finish = stop
else:
    deletion._Emptying._carry_out = stop
runpy.run_module("keptlog", run_name="__main__")
"""
_BEGUN = "stopped; the deletion of topic users has begun, and nobody finds its records any more: keptlog topic delete "
_BEGUN += "users, or the next purge, finishes it"
_UNKNOWN = "stopped; whether topic users is deleted is not known: keptlog topic delete users finishes it, or says that "
_UNKNOWN += "there is no such topic"


def _stopped_in(step: str, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED_IN, step, *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    return done.stderr.strip().removeprefix("keptlog: ")


@pytest.mark.parametrize(
    ("step", "told", "is_there"),
    [
        ("looked at", STOPPED, True),
        ("taken out", _UNKNOWN, False),
        ("looked for", _UNKNOWN, False),
        ("emptied", _BEGUN, False),
    ],
)
def test_who_stops_a_deletion_hears_whether_it_has_begun_and_what_finishes_it(
    keptlog: Run, step: str, told: str, is_there: bool
) -> None:
    """It was said that nothing is lost, and that what is not committed is swept."""
    keptlog("topic", "create", "users")
    assert _stopped_in(step, "topic", "delete", "users", "--yes") == told
    assert (keptlog("read", "users").code == 0) is is_there
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    assert "there is no topic" in keptlog("topic", "delete", "users", "--yes").err


def test_so_does_who_stops_a_purge_that_finishes_it(keptlog: Run) -> None:
    keptlog("topic", "create", "users")
    _stopped_in("taken out", "topic", "delete", "users", "--yes")
    assert _stopped_in("emptied", "purge", "--yes") == _BEGUN
    assert keptlog("purge", "--yes").code == 0
    assert keptlog("topic", "create", "users").code == 0

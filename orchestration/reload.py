"""Asks a code server to load its definitions anew, from inside of it; webserver and daemon notice by themselves.

    webserver ──┐  each second: is it the same server still?
    daemon    ──┴──> code server (dagster code-server start, dagster dev) ──> the process that has loaded
                              ^                                                        │
                              └──────────────── ReloadCode ────────────────────────────┘

That is what the button "Reload" does, too: the code server starts a new process beside the old one, turns to it once it
has loaded, and lets the old one finish its runs. The request is made in a thread, because the tick that makes it is one
of those things that the old process is to finish first.

Where the server can't do it, it is said who can: ``dagster api grpc`` loads once, and where webserver and daemon start
servers of their own (``python_module`` in ``workspace.yaml``, without ``dagster dev``), the daemon's is renewed each
minute and the webserver's by its button.
"""

from __future__ import annotations

import logging
import threading

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.remote_origin import CodeLocationOrigin, GrpcServerCodeLocationOrigin

from keptlog.errors import first_line

_logger = logging.getLogger(__name__)

_LOADING_SECONDS = 180
"""As long as Dagster gives a code server to start."""


def ask_for_reload(origin: CodeLocationOrigin | None) -> str | None:
    """Ask for it and go on; null, or why there is nobody to be asked."""
    if not isinstance(origin, GrpcServerCodeLocationOrigin):
        return "this code server can't be asked to: click Reload definitions (docs/dagster.md says where it can)"
    threading.Thread(target=_ask, args=(origin,), name="keptlog-reload", daemon=True).start()
    return None


def _ask(origin: GrpcServerCodeLocationOrigin) -> None:
    try:
        origin.create_client().reload_code(timeout=_LOADING_SECONDS)
    except (DagsterUserCodeUnreachableError, dg.DagsterError) as error:
        _logger.warning("the code location could not be asked to reload: %s", first_line(error))

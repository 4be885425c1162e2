"""How the process of a command ends: as Python ends one, but for taking apart all that it has imported.

Python waits for threads, calls what asked to be called at the end, flushes what was printed, and then spends up to a
fifth of a command's time on freeing modules and objects whose memory the system takes back anyway. mypy leaves that
out in the same way. Meanwhile Ctrl-C would also kill a process whose answer is complete.
"""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from keptlog.streams import NotPrinted

_STREAMS_FAILED = 120
"""What Python ends with if the last of the output could not be written."""


def exit_code_of(run: Callable[[], object]) -> int:
    """Run it as a process does from its first line to its end; whoever calls this leaves by ``os._exit``."""
    code = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str) and sys.stderr:
            print(ended.code, file=sys.stderr)  # noqa: T201
    except BaseException as error:  # noqa: BLE001  # as Python tells what nobody has caught
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    try:
        _shut_pools()
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  # as Python does, and multiprocessing
    except KeyboardInterrupt:
        # The answer is there. A thread may wait for a store that does not answer.
        code = code or 128 + signal.SIGINT
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit._run_exitfuncs()  # noqa: SLF001
    try:
        for stream in (sys.stdout, sys.stderr):
            # There is none where the caller has closed it.
            if stream and not stream.closed:
                stream.flush()
    except (OSError, NotPrinted):
        code = code or _STREAMS_FAILED
    return code & 0xFF


def _shut_pools() -> None:
    """Tell all pools that there is no more to do, as Python does at the end with those of whose threads it knows.

    Ctrl-C may come while a pool starts its first thread; then neither Python nor the pool hears of it. It would wait
    for work, and the process for it, for ever: PyIceberg has a pool that nobody closes.
    """
    pools: Any = sys.modules.get("concurrent.futures.thread")
    for thread in threading.enumerate() if pools else ():
        if getattr(thread, "_target", None) is pools._worker:  # noqa: SLF001  # no public name tells it
            # It has none any more if it ended just now.
            for pool_of in getattr(thread, "_args", ())[:1]:
                if pool := pool_of():
                    pool.shutdown(wait=False)

"""A local S3 that survives its ``kill -9``: S3Mock from Maven's jars, which keeps buckets and objects in a folder.

What it acknowledged is there when it is started again; what it was about to do may be there or not. But it writes the
list of a bucket's objects in place, at each of them: killed in the middle it has lost the bucket, and doesn't start any
more. No store that people have does, so it is killed between two such writes.

Its own launcher listens on all interfaces; ours, some lines of Java, on loopback only. It takes seconds to start, so
whoever kills no store takes ``s3_server``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from examples import installed
from examples.installed import MavenJars, java
from examples.lake.s3_server import S3Server
from examples.lake.server_process import ServerProcess, get, running
from examples.ports import free_port

VERSION = "5.2.0"
WHAT = f"S3Mock {VERSION}"
_HERE = Path(__file__).parent
_JARS = MavenJars(WHAT, "30 MB", _HERE / "kept-s3-jars.xml", installed.BUILD / f"s3mock-{VERSION}")
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def kept_s3_classpath(progress: Callable[[str], None] | None = None) -> str:
    """Fetch and compile what is missing, and return Java's class path.

    Raises:
        NotInstalled: there is no Java compiler, or Maven is missing or can't get the jars.
    """
    return _JARS.compiled([_HERE / "LoopbackS3.java"], progress)


@contextmanager
def kept_s3_server() -> Iterator[S3Server]:
    """Start a store; its process and its folder are gone when the block ends.

    Raises:
        NotInstalled: there is no Java, or Maven is missing or can't get the jars.
        StorageUnavailable: it does not start.
    """
    command = [java(WHAT), *_OPTIONS, "-cp", kept_s3_classpath(), "keptlog.LoopbackS3"]
    with tempfile.TemporaryDirectory(prefix="keptlog-kept-s3-") as temporary:
        folder, store = Path(temporary), Path(temporary, "store")
        store.mkdir()
        port = free_port()
        endpoint = f"http://127.0.0.1:{port}"
        server = ServerProcess(
            WHAT,
            [*command, str(port), str(store)],
            answers=lambda: bool(get(endpoint)),
            output=folder / "output",
            is_whole=lambda: all(map(_is_json, store.rglob("*.json"))),
        )
        with running(server):
            yield S3Server(server, endpoint)


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except FileNotFoundError:
        return True
    except ValueError:
        return False
    return True

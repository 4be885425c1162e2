"""An Iceberg REST catalog for as long as a block lasts: Iceberg's own, as its tests use it, from Maven's jars.

Its rows are in SQLite or, told so, in Postgres. Iceberg's launcher listens on all interfaces; ours, some lines of Java,
on loopback only. With ``vend`` it gives whoever loads a table the store's keys, as catalogs do that vend credentials.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples import installed
from examples.installed import MavenJars, java
from examples.lake.server_process import ServerProcess, get, running
from examples.ports import free_port

VERSION = "1.11.0"
WHAT = f"Iceberg's REST catalog {VERSION}"
_HERE = Path(__file__).parent
_JARS = MavenJars(WHAT, "97 MB", _HERE / "rest-catalog-jars.xml", installed.BUILD / f"iceberg-rest-{VERSION}")
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-Daws.region=us-east-1")
_STARTS_SOON = "-XX:TieredStopAtLevel=1"
_S3_NAMES = ("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token")


@dataclass(frozen=True)
class RestCatalog:
    """A catalog. ``uri`` is its URL."""

    server: ServerProcess
    uri: str


def rest_classpath(progress: Callable[[str], None] | None = None) -> str:
    """Fetch and compile what is missing, and return Java's class path.

    Raises:
        NotInstalled: there is no Java compiler, or Maven is missing or can't get the jars.
    """
    return _JARS.compiled([_HERE / "LoopbackCatalog.java"], progress)


@contextmanager
def rest_catalog(
    warehouse: str,
    store: Mapping[str, str] | None = None,
    backend: str | None = None,
    *,
    vend: bool = False,
    starts_soon: bool = True,
) -> Iterator[RestCatalog]:
    """Start a catalog; its process is gone when the block ends, and its rows unless they are in ``backend``.

    ``warehouse`` is an ``s3://`` location with the properties of its ``store``, or a local folder. ``backend`` is the
    URI of a Postgres database, as ``Postgres.create`` gives it. One that need not start soon has all of
    Java's compilers.

    Raises:
        NotInstalled: there is no Java, or Maven is missing or can't get the jars.
        StorageUnavailable: it does not start.
    """
    options = [*_OPTIONS, _STARTS_SOON] if starts_soon else _OPTIONS
    command = [java(WHAT), *options, "-cp", rest_classpath(), "org.apache.iceberg.rest.LoopbackCatalog"]
    with tempfile.TemporaryDirectory(prefix="keptlog-rest-") as temporary:
        folder = Path(temporary)
        settings = {"warehouse": warehouse, "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}
        settings |= {"jdbc.schema-version": "V1", "include-credentials": str(vend).lower()}
        settings |= _backend(backend, folder) | _files(warehouse, store or {})
        config = folder / "catalog.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        port = free_port()
        uri = f"http://127.0.0.1:{port}"
        server = ServerProcess(
            WHAT,
            [*command, str(config), str(port)],
            answers=lambda: bool(get(f"{uri}/v1/config")),
            output=folder / "output",
        )
        with running(server):
            yield RestCatalog(server, uri)


def _backend(uri: str | None, folder: Path) -> dict[str, str]:
    if uri is None:
        # One connection: SQLite has one writer, and whoever waits for it is told that it is locked.
        return {"uri": f"jdbc:sqlite:{folder / 'catalog.db'}", "clients": "1"}
    user, _, place = uri.partition("://")[2].partition("@")
    return {"uri": f"jdbc:postgresql://{place}", "jdbc.user": user, "clients": "8"}


def _files(warehouse: str, store: Mapping[str, str]) -> dict[str, str]:
    if not warehouse.startswith("s3://"):
        return {"io-impl": "org.apache.iceberg.rest.LoopbackCatalog$LocalFiles"}
    keys = {name: store[name] for name in _S3_NAMES if name in store}
    region = {"client.region": store.get("s3.region", "us-east-1")}
    return {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.path-style-access": "true", **region, **keys}

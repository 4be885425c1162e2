"""A catalog behind REST on loopback: Iceberg's protocol over HTTP, below it the embedded one, or another.

It counts what it is asked, takes its time if it is told to, and answers a commit as it is told: it may refuse it, lose
the answer, or carry it out and say that it did not.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.catalogs.rest import PatientRestCatalog

_STATUS: Mapping[type[Exception], int] = {
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


@dataclass(frozen=True)
class Answer:
    """What a request gets instead of the truth: a status, or nothing at all; ``lands`` says if it is carried out."""

    status: int | None
    lands: bool = False
    kind: str = "Planned"
    """The error's type, as a server written in Java names its exceptions."""
    text: bytes | None = None
    """What is sent in place of an error."""


@dataclass
class RestServer:
    """What it does, and what it was asked."""

    backend: Catalog
    port: int = 0
    delay_seconds: float = 0.0
    has_etags: bool = True
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    """What the next requests of a kind get: ``config``, ``list``, ``load``, ``commit`` …"""
    config: dict[str, str] = field(default_factory=dict)
    """What it gives with each table: credentials, for example."""
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by kind; a load that was answered by "not modified" is ``unchanged`` besides."""
    headers: dict[str, list[dict[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """What came with requests, by kind."""
    overrides: dict[str, str] = field(default_factory=dict)
    """Settings that it wants of each client, such as a ``prefix`` of all paths."""
    hidden: set[str] = field(default_factory=set)
    """Tables that stay in its list, and that it does not find."""
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def being_asked(self, kind: str) -> Iterator[None]:
        with self._lock:
            self.asked[kind] += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            time.sleep(self.delay_seconds)
            yield
        finally:
            with self._lock:
                self._at_once -= 1

    def count(self, kind: str) -> None:
        with self._lock:
            self.asked[kind] += 1

    def next_answer(self, kind: str) -> Answer | None:
        with self._lock:
            return self.answers[kind].pop(0) if self.answers.get(kind) else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of_test: ClassVar[RestServer]

    def do_GET(self) -> None:  # http.server's name
        self._handle()

    do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name
        """Say nothing."""

    def _handle(self) -> None:
        server = self.server_of_test
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        prefix = quote(server.overrides.get("prefix", ""))
        path = url.path.removeprefix("/v1/").removeprefix(f"{prefix}/")
        parts = [unquote(each) for each in path.split("/")]
        kind = _kind(self.command, parts)
        server.headers[kind].append(dict(self.headers))
        with server.being_asked(kind):
            answer = server.next_answer(kind)
            status = 200
            content: dict[str, Any] = {}
            if answer is None or answer.lands:
                try:
                    status, content = self._carried_out(kind, parts, body, parse_qs(url.query))
                except tuple(_STATUS) as error:
                    status = _STATUS[type(error)]
                    content = {"error": {"message": str(error), "type": type(error).__name__, "code": status}}
        if answer and answer.status is None:
            self.close_connection = True
            self.connection.close()
            return
        if answer and answer.status is not None:
            status = answer.status
            content = {"error": {"message": "as the test says", "type": answer.kind, "code": status}}
        self._answer(status, content, answer.text if answer else None)

    def _answer(self, status: int, content: dict[str, Any], text: bytes | None = None) -> None:
        text = b"" if status in {204, 304} or self.command == "HEAD" else text or json.dumps(content).encode()
        self.send_response(status)
        if tag := content.pop("etag", None):
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _carried_out(
        self, kind: str, parts: list[str], body: bytes, query: dict[str, list[str]]
    ) -> tuple[int, dict[str, Any]]:
        if kind == "load":
            if parts[3] in self.server_of_test.hidden:
                raise NoSuchTableError(parts[3])
            table = self.server_of_test.backend.load_table((parts[1], parts[3]))
            return self._loaded(table, is_small=query.get("snapshots") == ["refs"])
        answers: dict[str, Callable[[], dict[str, Any] | None]] = {
            "config": lambda: {"defaults": {}, "overrides": self.server_of_test.overrides},
            "namespaces": lambda: self._namespaces(query),
            "namespace": lambda: self._namespace(parts[1]),
            "create-namespace": lambda: self._create_namespace(json.loads(body)["namespace"]),
            "list": lambda: self._list(parts[1]),
            "create": lambda: self._create(parts[1], {"location": None} | json.loads(body)),
            "register": lambda: self._register(parts[1], json.loads(body)),
            "drop": lambda: self.server_of_test.backend.drop_table((parts[1], parts[3])),
            "rename": lambda: self._rename(json.loads(body)),
            "commit": lambda: self._commit((parts[1], parts[3]), CommitTableRequest.model_validate_json(body)),
        }
        content = answers[kind]()
        return (204, {}) if content is None else (200, content)

    def _namespaces(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """All are at the top."""
        return {"namespaces": [] if "parent" in query else self.server_of_test.backend.list_namespaces()}

    def _namespace(self, name: str) -> dict[str, Any]:
        if not self.server_of_test.backend.namespace_exists(name):
            raise NoSuchNamespaceError(name)
        return {"namespace": [name], "properties": {}}

    def _create_namespace(self, name: list[str]) -> dict[str, Any]:
        self.server_of_test.backend.create_namespace(tuple(name))
        return {"namespace": name, "properties": {}}

    def _list(self, namespace: str) -> dict[str, Any]:
        listed = self.server_of_test.backend.list_tables(namespace)
        return {"identifiers": [{"namespace": list(each[:-1]), "name": each[-1]} for each in listed]}

    def _create(self, namespace: str, content: dict[str, Any]) -> dict[str, Any]:
        asked = CreateTableRequest.model_validate(content)
        table = self.server_of_test.backend.create_table(
            (namespace, asked.name),
            asked.table_schema,
            asked.location,
            partition_spec=asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            sort_order=asked.write_order or UNSORTED_SORT_ORDER,
            properties=asked.properties,
        )
        return self._table(table)

    def _register(self, namespace: str, asked: dict[str, Any]) -> dict[str, Any]:
        name = namespace, asked["name"]
        return self._table(self.server_of_test.backend.register_table(name, asked["metadata-location"]))

    def _rename(self, asked: dict[str, Any]) -> None:
        old, new = ((*asked[each]["namespace"], asked[each]["name"]) for each in ("source", "destination"))
        self.server_of_test.backend.rename_table(old, new)

    def _commit(self, name: tuple[str, str], change: CommitTableRequest) -> dict[str, Any]:
        catalog = self.server_of_test.backend
        done = catalog.commit_table(catalog.load_table(name), change.requirements, change.updates)
        metadata = json.loads(done.metadata.model_dump_json())
        return {"metadata-location": done.metadata_location, "metadata": metadata}

    def _loaded(self, table: Table, *, is_small: bool) -> tuple[int, dict[str, Any]]:
        tag = f'"{"refs" if is_small else "all"}-{table.metadata_location}"' if self.server_of_test.has_etags else None
        if tag and self.headers.get("If-None-Match") == tag:
            self.server_of_test.count("unchanged")
            return 304, {}
        return 200, self._table(table) | ({"etag": tag} if tag else {})

    def _table(self, table: Table) -> dict[str, Any]:
        metadata = _metadata(table.metadata_location, table.metadata)
        return {
            "metadata-location": table.metadata_location,
            "metadata": metadata,
            "config": self.server_of_test.config,
        }


_known: dict[str, dict[str, Any]] = {}


def _metadata(location: str, metadata: TableMetadata) -> dict[str, Any]:
    """It never changes."""
    if location not in _known:
        _known[location] = json.loads(metadata.model_dump_json())
    return _known[location]


def _kind(command: str, parts: list[str]) -> str:
    if parts[0] == "config":
        return "config"
    if parts == ["tables", "rename"]:
        return "rename"
    if parts == ["namespaces"] and command == "GET":
        return "namespaces"
    if len(parts) <= 2:
        return "create-namespace" if command == "POST" else "namespace"
    if len(parts) == 3:
        made = "register" if parts[2] == "register" else "create"
        return made if command == "POST" else "list"
    return {"GET": "load", "HEAD": "load", "POST": "commit", "DELETE": "drop"}[command]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked may be gone, which is what some tests are about."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def rest_server(home: Path | Catalog) -> Iterator[RestServer]:
    """A server over a home, or over a catalog, until the context is left."""
    told = RestServer(EmbeddedCatalog(home) if isinstance(home, Path) else home)
    handler = type("_ItsHandler", (_Handler,), {"server_of_test": told})
    server = _Server(("127.0.0.1", 0), handler)
    told.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def catalog_of(kind: str, home: Path) -> Iterator[Catalog]:
    """The catalog of a home: ``embedded``, or ``rest``, by a server over it."""
    if kind == "embedded":
        yield open_catalog(home)
        return
    with rest_server(home) as server:
        how = {"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"}
        yield PatientRestCatalog("rest", uri=server.uri, **how)

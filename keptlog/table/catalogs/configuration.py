"""PyIceberg's configuration, looked at before PyIceberg reads it; and what of it may not be, because it would be told.

PyIceberg reads ``.pyiceberg.yaml`` and ``PYICEBERG_…`` as soon as it is imported. What it says of a file that is no
YAML shows lines of it, and what it says of variables that contradict each other shows their values: each of them may be
a password. So before anything of this package is imported it is looked at, if there is anything to look at.

An address is told by whoever can't reach it. So none may have a password in it, but that of a database, which is hidden
as long as everybody can see where it ends.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from keptlog.errors import InvalidConfig
from keptlog.table.io.aws_profile import endpoint_of_profile
from keptlog.table.namespaces import CATALOG_NAME
from keptlog.whole_file import warn_of_readers

FILE_IO, OWN_FILE_IO = "py-io-impl", "keptlog.table.io.file_io.DurableFileIO"
_FILE = ".pyiceberg.yaml"
_VARIABLES = "PYICEBERG_"
_SECRET = re.compile(r"secret|token|credential|password|://[^/\s]*:[^/\s]*@", re.IGNORECASE)
_USER_IN_ADDRESS = re.compile(r"https?://[^/?#]*@", re.IGNORECASE)
_USER_OF_DATABASE = re.compile(r"\A([\w+.-]+://)[^:/]*(:[^@]*)?@")
"""As SQLAlchemy reads it: a password ends at the @, and may have a / ? # or [ in it, at which other addresses end."""
_NO_PORT = re.compile(r"[^/?@:\[\]]+:(?!\d*([/?]|$))[^/?@]*([/?][^@]*)?$")
"""An address without a user, and what it has in the place of a port; SQLAlchemy tells that."""
_RELATIVE = re.compile(r"(file:(//)?)?(?!/|[A-Za-z][\w+.-]*:)")
_NAMELESS = re.compile(r"(?!hdfs|viewfs)[A-Za-z][\w+.-]*://(/|[^/]*/(.*/)?/)")
"""An address in which a bucket or a folder has no name. Slashes at its end are none of it."""
_IN_MEMORY = re.compile(r"sqlite(\+\w+)?://(/(:memory:|file::memory:.*|file:.*[?&]mode=memory.*)?)?(\?.*)?$")
"""A database of SQLite that ends with its process."""
_WITHOUT_DELETES = re.compile(r"arn:[\w-]*:s3tables:|(\d+:)?s3tablescatalog/")
"""How settings name a table bucket: to its own catalog, and to Glue's. In it no program may list or delete objects."""
_BUCKETS = ("warehouse", "glue.id", "s3tables.warehouse")
_SQLITE = re.compile(r"sqlite(\+\w+)?:///([^?]*)(\?.*)?")
_NAMES_A_URI = re.compile(r"[?&]uri=(true|yes|on|y|t|1)(&|$)", re.IGNORECASE)
"""Without it SQLAlchemy takes ``file:`` for the begin of a file's name."""
_FILE_URI = re.compile(r"file:(?://[^/]*)?([^#]*)")
"""As SQLite reads it, which refuses any host but ``localhost`` itself."""
_WITHOUT_COMMITS = {"dynamodb": "DynamoDB", "bigquery": "BigQuery"}
"""What PyIceberg creates, lists and drops tables in, and has no commits for. To open one makes a table there."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_WEB = ("http://", "https://")
_DATABASES = ("sqlite", "postgresql")
OF_POSTGRES = "postgresql+psycopg2://"
"""So begins the address of a database whose driver the extra ``postgres`` brings."""
_KINDS = {"http": "rest"} | dict.fromkeys(_DATABASES, "sql")
_CLASSES = {
    "pyiceberg.catalog.memory.InMemoryCatalog": "in-memory",
    "pyiceberg.catalog.sql.SqlCatalog": "sql",
    "pyiceberg.catalog.rest.RestCatalog": "rest",
    "pyiceberg.catalog.glue.GlueCatalog": "glue",
    "pyiceberg.catalog.hive.HiveCatalog": "hive",
    "pyiceberg.catalog.dynamodb.DynamoDbCatalog": "dynamodb",
    "pyiceberg.catalog.bigquery_metastore.BigQueryMetastoreCatalog": "bigquery",
}
"""PyIceberg's own classes, which somebody may name in the place of their kind."""
_TELL_KIND = ("thrift", *_KINDS)
"""How an address begins by which PyIceberg knows the kind of a catalog that names none; another one it tells."""


def require_readable() -> None:
    """Refuse a configuration that PyIceberg can't read. Where PyIceberg is missing, on workers, nobody will read it.

    Raises:
        InvalidConfig: naming the file and its line, or the variables.
    """
    file = _file()
    if file is None and not any(name.upper().startswith(_VARIABLES) for name in os.environ):
        return
    try:
        from pyiceberg.utils.config import Config  # noqa: PLC0415  # workers may have none
    except ModuleNotFoundError:
        return
    try:
        Config()
    except UnicodeDecodeError:
        raise InvalidConfig(f"{file} can't be read: it is not text") from None
    except OSError as error:
        raise InvalidConfig(f"{file} can't be read: {error.strerror}") from None
    except Exception as error:  # noqa: BLE001  # a parser's own, of a package that is not ours
        raise InvalidConfig(_why_unreadable(error, file)) from None


def catalog_settings() -> dict[str, Any] | None:
    """What is configured for keptlog's catalog; null if nothing is. A secret that others can read is a warning.

    Raises:
        InvalidConfig: it is no list of settings, one of them would be told, it would end with this process, nothing
            can be committed to it or deleted there, its warehouse is none, or its files would be without checksums.
    """
    from pyiceberg.utils.config import Config  # noqa: PLC0415  # as above

    require_readable()
    try:
        configured = Config().get_catalog_config(CATALOG_NAME)
    except ValueError:
        told = "it has no settings of its own; give PYICEBERG_CATALOG__KEPTLOG__URI and the others (docs/lake.md)"
        raise InvalidConfig(f"the configured catalog {CATALOG_NAME!r} is not usable: {told}") from None
    file = _file()
    if file and _SECRET.search(file.read_text(encoding="utf-8")):
        warn_of_readers(file)
    if configured:
        require_no_password_told(configured)
        _require_lasting(configured)
        _require_whole_database(configured)
        _require_whole_warehouse(configured)
        return _with_endpoint(configured)
    return configured


def catalog_told() -> str:
    """Which catalog is configured, without what is secret of it; ``embedded`` if none is.

    Raises:
        InvalidConfig: its configuration can't be read, or its address.
    """
    settings = catalog_settings()
    if not settings:
        return "embedded"
    uri = str(settings.get("uri", ""))
    try:
        # That of a web address is refused, and an @ in one is part of its path.
        address = urlsplit(uri if uri.lower().startswith(_WEB) else _USER_OF_DATABASE.sub(r"\1", uri))
    except ValueError:
        raise _refused("the host in its uri is not readable: what stands in [ ] is an address of IPv6") from None
    # A database's address does not end at a #, and what stands behind its ? may be secret. Where somebody has written #
    # for ?, so is that; that of SQLite has no password.
    rest = "" if uri.lower().startswith(_WEB) or address.query else address.fragment.partition("?")[0]
    rest = f"#{rest}" if rest and ("=" not in rest or _SQLITE.fullmatch(uri)) else ""
    place = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}{rest}"
    return f"{kind_of(settings) or settings.get('py-catalog-impl')} {place} {settings.get('warehouse', '')}".strip()


def kind_of(properties: Mapping[str, Any]) -> str:
    """Which of PyIceberg's catalogs these settings mean, such as ``rest``; empty where that can't be told.

    The class of another program is none of them, whatever it is derived from.
    """
    if "py-catalog-impl" in properties:
        return _CLASSES.get(str(properties["py-catalog-impl"]), "")
    uri = str(properties.get("uri", ""))
    told = next((kind for begin, kind in _KINDS.items() if uri.startswith(begin)), "")
    return str(properties.get("type") or told).lower()


def require_no_password_told(properties: Mapping[str, Any]) -> None:
    """Refuse an address with a password that somebody would tell, without a word of it.

    Raises:
        InvalidConfig: naming the setting.
    """
    uri = str(properties.get("uri", ""))
    is_named = bool(properties.get("type") or properties.get("py-catalog-impl"))
    if uri and not is_named and not uri.startswith(_TELL_KIND):
        raise _refused(
            "its uri does not tell what kind of catalog it is (it is not shown, it may hold a password): that of a "
            f"database begins with {OF_POSTGRES} or sqlite:///, that of a REST catalog with https://; or give its type"
        )
    if kind_of(properties) == "rest" and not uri.lower().startswith(_WEB):
        what = "its uri is no address of a REST catalog" if uri else "it has no uri, the address of a REST catalog"
        raise _refused(f"{what}: it begins with http:// or https://")
    for name, value in _flat(properties):
        if name != "s3.proxy-uri" and _USER_IN_ADDRESS.match(value):
            raise _refused(
                f"its {name} has a user or a password in it, and whoever can't reach an address tells it: give them by "
                "settings of their own, such as credential, token or s3.secret-access-key"
            )
    after = uri.partition("://")[2]
    if (kind_of(properties) == "sql" or uri.startswith(_DATABASES)) and _NO_PORT.match(after):
        raise _refused(
            "what stands behind the : in its uri is no port, and may be a password: write "
            f"{OF_POSTGRES}USER:PASSWORD@HOST:PORT/DATABASE"
        )
    is_password = not after.startswith("/") and ":" in after.partition("@")[0]
    if is_password and after.count("@") > 1:
        raise _refused(
            "the password in its uri has an @ in it, so that nobody can tell where it ends: write %40 for @, "
            "%2F for /, %3A for : and %25 for %"
        )


def _with_endpoint(properties: dict[str, Any]) -> dict[str, Any]:
    """The same, with the S3 endpoint of the environment, or of its profile: boto3 knows it, and Arrow does not.

    Records would go to another store than the one that is looked at.
    """
    is_ignored = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true"
    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    if is_ignored or "s3.endpoint" in properties:
        return properties
    if endpoint is None and kind_of(properties) != "rest":  # a server may have one, which a setting would go before
        endpoint = endpoint_of_profile()
    return {"s3.endpoint": endpoint} | properties if endpoint else properties


def _require_lasting(properties: Mapping[str, Any]) -> None:
    """What a command creates is to be there for the next one, to take records, with the checksums that tell damage."""
    without_commits = _WITHOUT_COMMITS.get(kind_of(properties))
    if without_commits:
        raise _refused(
            f"PyIceberg's client for {without_commits} can't commit, so no topic there could take a record: use "
            "another catalog, such as a database, a REST catalog or Glue"
        )
    if any(_WITHOUT_DELETES.match(str(properties.get(name, ""))) for name in _BUCKETS):
        raise _refused(
            "S3 Tables let no program list or delete files, so no purge there could take away what was replaced, and "
            "no erasure could be proved: use another catalog, with files in an ordinary bucket"
        )
    if kind_of(properties) == "in-memory" or _IN_MEMORY.match(str(properties.get("uri", ""))):
        raise _refused(
            "it is kept in the memory of a process, and each command is one of its own: give the uri of a database "
            f"that lasts, such as {OF_POSTGRES}HOST/DATABASE or sqlite:////FOLDER/catalog.db"
        )
    if FILE_IO in properties and properties[FILE_IO] != OWN_FILE_IO:
        raise _refused(
            f"{FILE_IO} {properties[FILE_IO]} writes metadata without checksums, and not durably: take that setting "
            "out, keptlog has its own"
        )


def _require_whole_database(properties: Mapping[str, Any]) -> None:
    """SQLite makes an empty database wherever a command is started, and that has no topics and no erasures."""
    form = _SQLITE.fullmatch(str(properties.get("uri", "")))
    if form is None:
        return
    path, (named, is_uri) = form[2], _file_named(form)
    _require_no_home(Path(unquote(named) if is_uri else named))
    if not named.startswith("/"):
        whole = f"sqlite:///{'file:' if named != path else ''}{Path.cwd() / named}"
        raise _refused(
            f"its database {path} is another file in each working directory: give the whole path, such as {whole}, "
            "and after it what follows a ? in its uri. Topics that are in it already are found only where commands "
            "were run until now"
        )


def sqlite_file(properties: Mapping[str, Any]) -> Path | None:
    """The file of a database of SQLite, as its address names it; null where the address is of something else."""
    form = _SQLITE.fullmatch(str(properties.get("uri", "")))
    if form is None:
        return None
    named, is_uri = _file_named(form)
    return Path(unquote(named) if is_uri else named)


def _file_named(form: re.Match[str]) -> tuple[str, bool]:
    """The file in an address of SQLite, and whether that is an URI."""
    is_uri = bool(_NAMES_A_URI.search(form[3] or ""))
    in_uri = _FILE_URI.match(form[2]) if is_uri else None
    return (in_uri[1] if in_uri else form[2]), is_uri


def _require_no_home(database: Path) -> None:
    """A home opens its own catalog, and asks it first whether it is a copy: a configured one is asked nothing."""
    from keptlog.table.catalogs.home_location import is_of_home  # noqa: PLC0415  # it is asked of SQLite alone

    database = Path.cwd() / database
    if is_of_home(database):
        home = shlex.quote(str(database.parent))
        raise _refused(
            f"its database {database} is the own catalog of a home: take it out of the configuration, and set "
            f"KEPTLOG_HOME={home}. Programs that read it by PyIceberg give its uri themselves (docs/readers.md)"
        )


def _require_whole_warehouse(properties: Mapping[str, Any]) -> None:
    """A database's catalog names files below it, and from another working directory a relative path leads elsewhere."""
    warehouse = str(properties.get("warehouse") or "/")
    if kind_of(properties) == "sql" and _RELATIVE.match(warehouse):
        raise _refused(
            f"its warehouse {warehouse} is another folder in each working directory: give the whole path. Topics that "
            "are below it already are found only where commands were run until now"
        )
    if "://" not in warehouse or warehouse.startswith("file:") or kind_of(properties) == "rest":
        return
    if "#" in warehouse or "?" in warehouse:
        raise _refused(
            f"its warehouse {warehouse} has a # or a ? in it. Readers by PyIceberg and others take that for the end of "
            "the path: give a prefix without"
        )
    if _NAMELESS.match(warehouse.rstrip("/")):
        raise _refused(
            f"its warehouse {warehouse} has a bucket or a folder without a name, which not every client of a store "
            "takes: take the double / out. It may stand for a variable that is empty"
        )


def _flat(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings by their whole names: those of ``auth`` stand below it."""
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", text) for inner, text in _flat(value))
        else:
            yield str(name), str(value)


def _refused(why: str) -> InvalidConfig:
    return InvalidConfig(f"the configured catalog {CATALOG_NAME!r}: {why}")


def _file() -> Path | None:
    """The one that PyIceberg takes: the first that there is."""
    folders = [os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"), str(Path.cwd())]  # noqa: PTH111  # as PyIceberg does
    return next((Path(each, _FILE) for each in folders if each and Path(each, _FILE).is_file()), None)


def _why_unreadable(error: Exception, file: Path | None) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return (
            f"the variables {_VARIABLES}… {'and ' + str(file) + ' ' if file else ''}contradict each other: one gives a "
            "text where another gives settings below it; unset one of them"
        )
    return (
        f"{file} line {mark.line + 1} can't be read as YAML: indent with spaces, give each name once, and put nothing "
        "in braces"
    )

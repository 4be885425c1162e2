"""A catalog whose configuration is wrong: one line that says what to write, and nothing of what stands there."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.configuration import require_no_password_told
from tests.logging.lines import lines
from tests.security.searching import found_in
from tests.security.test_errors import CATALOG, refusing_server, said_by

SECRET = "planted-secret"  # noqa: S105  # nobody's
SECRETS = {"the secret": SECRET}
GOOD = "catalog:\n  keptlog:\n    type: sql\n    uri: sqlite:///{folder}/catalog.db\n    warehouse: /lake\n"
NO_YAML = {
    "a tab": (f"catalog:\n  keptlog:\n\turi: postgresql://u:{SECRET}@h/db\n", "line 3 can't be read as YAML"),
    "in braces": (f"catalog: {{keptlog: {{token: {SECRET}}}}}\n", "line 1 can't be read as YAML"),
    "twice": (f"catalog:\n  keptlog:\n    token: a\n    token: {SECRET}\n", "line 4 can't be read as YAML"),
    "no text": (f"\xff{SECRET}", "it is not text"),
}


def keptlog(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: PyIceberg reads its configuration when it is imported."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYICEBERG", "KEPTLOG"))}
    return subprocess.run(
        [sys.executable, "-m", "keptlog", *arguments],
        env=known | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize("what", NO_YAML)
def test_a_configuration_file_that_is_no_yaml_is_one_line_and_nothing_of_it_is_shown(tmp_path: Path, what: str) -> None:
    content, told = NO_YAML[what]
    file = tmp_path / ".pyiceberg.yaml"
    file.write_bytes(content.encode("latin-1"))

    done = keptlog("status", PYICEBERG_HOME=str(tmp_path), KEPTLOG_HOME=str(tmp_path / "home"))

    [line] = done.stderr.splitlines()
    assert line.startswith(f"keptlog: {file}")
    assert told in line
    assert done.returncode == 2
    assert found_in(done.stdout + done.stderr, SECRETS) == []


def test_help_is_there_whatever_is_configured(tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(NO_YAML["a tab"][0])

    done = keptlog("--help", PYICEBERG_HOME=str(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert "doctor" in done.stdout


def test_variables_that_contradict_each_other_are_one_line(tmp_path: Path) -> None:
    variables = {"PYICEBERG_CATALOG__KEPTLOG": "sql", f"{CATALOG}TOKEN": SECRET}

    done = keptlog("status", KEPTLOG_HOME=str(tmp_path), **variables)

    assert done.returncode == 2
    assert done.stderr.startswith("keptlog: the variables PYICEBERG_… ")
    assert found_in(done.stderr, SECRETS) == []


def test_a_catalog_that_is_no_list_of_settings_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG", SECRET)

    with pytest.raises(InvalidConfig, match="the configured catalog 'keptlog' is not usable") as raised:
        open_catalog(tmp_path)

    assert found_in(str(raised.value), SECRETS) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"TYPE": "rest", "URI": f"https://someone:{SECRET}@127.0.0.1:1"}, "uri"),
        ({"URI": f"http://{SECRET}@127.0.0.1:1/?a=b"}, "uri"),
        ({"TYPE": "rest", "URI": f"someone:{SECRET}@127.0.0.1:1"}, "begins with http:// or https://"),
        ({"TYPE": "rest", "URI": "http://127.0.0.1:1", "OAUTH2_SERVER_URI": f"https://u:{SECRET}@h/"}, "oauth2-server"),
        ({"TYPE": "sql", "URI": "sqlite://", "S3__ENDPOINT": f"http://u:{SECRET}@127.0.0.1:1"}, "s3.endpoint"),
    ],
)
def test_an_address_with_a_password_in_it_is_refused(tmp_path: Path, settings: dict[str, str], told: str) -> None:
    message, chain = said_by(tmp_path, settings)

    assert told in message
    assert found_in(chain, SECRETS) == []


@pytest.mark.parametrize(
    "uri",
    [
        f"postgres://someone:{SECRET}@127.0.0.1:1/db",
        f"Postgresql://someone:{SECRET}@127.0.0.1:1/db",
        f"mysql://someone:{SECRET}@127.0.0.1:1/db",
        f"jdbc:postgresql://127.0.0.1:1/db?user=someone&password={SECRET}",
        SECRET,
    ],
)
def test_an_address_that_tells_no_kind_of_catalog_is_refused_and_not_shown(tmp_path: Path, uri: str) -> None:
    message, chain = said_by(tmp_path, {"URI": uri})

    assert "begins with postgresql+psycopg2://" in message
    assert found_in(chain, SECRETS) == []


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        ("postgresql", "needs psycopg, .* write postgresql\\+psycopg2://, for which keptlog\\[postgres\\] is enough$"),
        ("mysql", "needs MySQLdb, and that is not installed: install it$"),
        ("postgres", "no database that SQLAlchemy knows: that of PostgreSQL begins with postgresql\\+psycopg2://$"),
    ],
)
def test_a_database_without_a_driver_is_told_as_that(tmp_path: Path, begin: str, told: str) -> None:
    """SQLAlchemy takes a bare ``postgresql://`` for psycopg 3, which no extra of keptlog brings."""
    message, chain = said_by(tmp_path, {"TYPE": "sql", "URI": f"{begin}://someone:{SECRET}@127.0.0.1:1/db"})

    assert re.search(f"its uri begins with {begin}://, .*{told}", message), message
    assert found_in(chain, SECRETS) == []


@pytest.mark.parametrize("rest", ["h:abc/db", "[::1]:54x/db"])
def test_a_port_that_is_no_number_is_told_and_ends_no_look(tmp_path: Path, rest: str) -> None:
    """It was a traceback for each command, and no code location of Dagster loaded."""
    message, chain = said_by(tmp_path, {"TYPE": "sql", "URI": f"postgresql+psycopg2://someone:{SECRET}@{rest}"})

    assert message.startswith("the configured catalog 'keptlog' is not usable: ")
    assert found_in(chain, SECRETS) == []


def test_a_scheme_of_two_drivers_is_told_and_ends_no_look(tmp_path: Path) -> None:
    message, _ = said_by(tmp_path, {"TYPE": "sql", "URI": "postgresql+x+y://127.0.0.1/db"})

    assert message.startswith("the configured catalog 'keptlog' is not usable: ")


def test_a_driver_that_can_not_be_imported_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As psycopg 3 without libpq."""
    (tmp_path / "psycopg.py").write_text("raise ImportError('no pq wrapper available.\\nAttempts made:')")
    monkeypatch.syspath_prepend(str(tmp_path))

    message, _ = said_by(tmp_path, {"TYPE": "sql", "URI": "postgresql://127.0.0.1:1/db"})

    assert message.endswith("which begins with postgresql://, can't be imported: no pq wrapper available.")


@pytest.mark.parametrize("kind", [{}, {"TYPE": "sql"}])
@pytest.mark.parametrize("rest", ["", "/db", "?sslmode=require", "/db?sslmode=require"])
def test_a_password_that_stands_where_a_port_belongs_is_not_shown(
    tmp_path: Path, kind: dict[str, str], rest: str
) -> None:
    message, chain = said_by(tmp_path, {**kind, "URI": f"postgresql+psycopg2://someone:{SECRET}{rest}"})

    assert "HOST:PORT" in message
    assert found_in(chain, SECRETS) == []


@pytest.mark.parametrize(
    "uri",
    [
        "http://[::1]:8181/catalog",
        "thrift://one:9083,thrift://two:9083",
        "postgresql://127.0.0.1:5432/db?application_name=a@b",
        "postgresql+psycopg2://someone:planted/its-tail@127.0.0.1/db",
        "postgresql://[::1]:5432/db",
        "postgresql://127.0.0.1/db",
        "sqlite:////srv/a:b/catalog.db",
        "sqlite://",
    ],
)
def test_an_address_of_a_kind_that_is_known_is_taken(uri: str) -> None:
    require_no_password_told({"uri": uri})


@pytest.mark.parametrize("status", [401, 403, 404, 500])
@pytest.mark.parametrize("name", ["TOKEN", "CREDENTIAL"])
def test_a_rest_catalog_that_says_again_what_it_was_sent_tells_no_token(tmp_path: Path, name: str, status: int) -> None:
    with refusing_server(status, is_echoing=True) as uri:
        _, chain = said_by(tmp_path, {"TYPE": "rest", "URI": uri, name: f"client:{SECRET}"})

    assert "[hidden]" in chain
    assert found_in(chain, SECRETS) == []


@pytest.mark.parametrize("sign", ['"', "\\", "/", "ü", "&"])
def test_a_secret_that_an_answer_writes_in_jsons_way_is_not_told(tmp_path: Path, sign: str) -> None:
    secret = f"planted{sign}its-tail"

    with refusing_server(400, is_echoing=True) as uri:
        _, chain = said_by(tmp_path, {"TYPE": "rest", "URI": uri, "CREDENTIAL": f"client:{secret}"})

    assert "[hidden]" in chain
    assert "its-tail" not in chain


@pytest.mark.parametrize("name", ["s3.connect-timeout", "s3.request-timeout"])
def test_a_setting_that_is_no_number_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pytest.importorskip("boto3")
    warehouse = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path / 'catalog.db'}", "WAREHOUSE": "s3://bucket/warehouse"}
    given = {**warehouse, "S3__ENDPOINT": "http://127.0.0.1:1", name.upper().replace(".", "__").replace("-", "_"): "x"}
    for setting, value in given.items():
        monkeypatch.setenv(CATALOG + setting, value)

    with pytest.raises(InvalidConfig, match=f"^{name}=x is no number of seconds"):
        open_home(tmp_path / "home").create_topic("users", 1, {"cleanup.policy": "compact"})


@pytest.mark.parametrize(
    ("mode", "content", "warnings"),
    [(0o644, f"{GOOD}    token: {SECRET}\n", 1), (0o600, f"{GOOD}    token: {SECRET}\n", 0), (0o644, GOOD, 0)],
)
def test_a_configuration_file_with_a_secret_that_others_can_read_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, content: str, warnings: int
) -> None:
    file = tmp_path / ".pyiceberg.yaml"
    file.write_text(content.format(folder=tmp_path))
    file.chmod(mode)

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setenv("PYICEBERG_HOME", str(tmp_path))
        open_catalog(tmp_path)
        open_catalog(tmp_path)

    told = [text for _, text in lines(caplog) if "holds a secret" in text]
    assert told == [f"{file} holds a secret, and others can read or change it (mode 644): chmod 600 {file}"] * warnings

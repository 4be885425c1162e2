"""A user whom this machine does not know, as one of a container that is a number: it works for him all the same."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from keptlog.disk import user_name
from tests.cli.conftest import Run


@pytest.fixture
def unknown_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an entry in passwd, and without HOME: nobody knows where his folder is."""

    def no_entry(name: object) -> None:
        raise KeyError(f"not found: {name}")

    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    monkeypatch.setattr(pwd, "getpwnam", no_entry)
    monkeypatch.delenv("HOME")
    with pytest.raises(RuntimeError):
        Path.home()


@pytest.mark.usefixtures("unknown_user")
def test_who_has_no_folder_of_his_own_creates_topics_and_looks_at_them(keptlog: Run) -> None:
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    assert keptlog("status").code == 0
    assert keptlog("doctor", "--json").json["diagnosis"] == "fine"


@pytest.mark.usefixtures("unknown_user")
def test_he_is_called_by_his_number() -> None:
    assert user_name() == str(os.geteuid())


@pytest.mark.usefixtures("unknown_user")
def test_a_configured_catalog_is_found(keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake").mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    assert list((tmp_path / "lake").rglob("*.metadata.json"))


def test_a_signing_key_in_the_folder_of_somebody_unknown_is_not_there(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    monkeypatch.setenv("KEPTLOG_SIGNING_KEY_FILE", "~nobody-here/receipts.key")
    [receipts] = [each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "receipts"]
    [problem] = receipts["problems"]
    assert "~nobody-here/receipts.key" in problem["what"]

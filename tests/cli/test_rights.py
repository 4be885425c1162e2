"""What a user is told who may not read or write something of a home: what is missing, and never to put back a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.disk import user_name
from keptlog.receipts.key_files import signing_key
from tests.cli.conftest import Run, checks_of, configure


def test_doctor_names_the_right_that_is_missing_for_a_topic_and_puts_nothing_back(user: Run, home: Path) -> None:
    (home / "warehouse/keptlog/odd").chmod(0)
    told = user("doctor", "--no-probes", "--json")
    [found] = checks_of(told)["topics"]["problems"]
    assert (told.code, found["subject"]) == (1, "odd")
    assert "Permission denied" in found["what"]
    assert found["cause"].startswith("a right is missing: ")
    assert found["todo"].startswith("give this user or these credentials the right; nothing is lost")


def test_doctor_names_a_live_file_that_may_be_listed_and_not_read(user: Run, home: Path) -> None:
    [segment] = (home / "warehouse/keptlog/odd/data").rglob("*.parquet")
    segment.chmod(0)
    told = user("doctor", "--no-probes", "--json")
    [found] = checks_of(told)["files"]["problems"]
    assert (told.code, found["subject"]) == (1, "odd")
    assert found["what"].startswith("1 live file can't be read by this user, ")
    assert found["what"].endswith(f"{segment} first")
    assert found["cause"].startswith("a right is missing: ")


def test_a_lock_that_another_user_has_left_keeps_nothing_from_being_remembered(user: Run, home: Path) -> None:
    (home / "notify").mkdir()
    for name in ("lock", "checks.lock"):
        (home / "notify" / name).touch(0o444)
    [segment] = (home / "warehouse/keptlog/odd/data").rglob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:-1])
    assert "is not remembered" not in user("verify", "odd").err
    assert "odd-0" in (home / "notify/checks.json").read_text()


def test_a_topic_that_may_not_be_read_stops_no_other_of_a_file(user: Run, home: Path, tmp_path: Path) -> None:
    (home / "warehouse/keptlog/odd").chmod(0)
    (tmp_path / "topics.yaml").write_text("topics:\n  odd: {partitions: 2}\n  new: {}\n")
    told = user("topic", "apply", str(tmp_path / "topics.yaml"), "--json")
    assert (told.code, told.json["done"], told.json["not_tried"]) == (1, ["new"], [])
    assert [each["subject"] for each in told.json["errors"]] == ["odd"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("append", "odd", "--file", "records.jsonl", "--quiet"),
        ("topic", "create", "new"),
        ("topic", "delete", "odd", "--yes"),
    ],
    ids=["append", "create", "delete"],
)
def test_what_would_write_to_a_home_that_this_user_may_only_read_says_so(
    user: Run, home: Path, lines: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    file = lines({"key": "b", "value": "1"})
    for path in (home, *home.rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    told = user(*(file if each == "records.jsonl" else each for each in arguments))
    assert (told.code, told.out) == (1, "")
    assert "room" not in told.err
    assert "try again" not in told.err.replace("then try again", "")
    assert "see to its permissions and credentials" in told.err or "let this user write there" in told.err


@pytest.mark.parametrize("folder", ["data/partition=0", "metadata", "metadata/gc", "metadata/receipts/runs"])
def test_doctor_names_a_folder_of_a_topic_that_another_user_has_made(user: Run, home: Path, folder: str) -> None:
    shut = home / "warehouse/keptlog/odd" / folder
    shut.mkdir(parents=True, exist_ok=True)
    shut.chmod(0o555)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    assert (found["subject"], found["files"]) == ("odd", [str(shut)])
    assert found["what"].startswith(f"{shut} can't be written to, so an append, a clean, ")
    assert f"chmod -R g+rwX {home}/warehouse/keptlog/odd, " in found["todo"]


def test_doctor_names_a_chain_of_receipts_to_which_this_user_may_not_write(user: Run, keptlog: Run, home: Path) -> None:
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    chain = home / "warehouse/keptlog_receipts/chain"
    for folder in (chain, *(each for each in chain.rglob("*") if each.is_dir())):
        folder.chmod(0o555)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    assert (found["subject"], len(found["files"])) == ("receipts", 6)
    assert "gets no receipt" in found["what"]
    assert f"chmod -R g+rwX {chain}, " in found["todo"]


def test_doctor_tells_of_all_topics_in_one_line_that_this_user_may_not_write_to_them(user: Run, home: Path) -> None:
    for folder in (home / "warehouse").rglob("*"):
        if folder.is_dir():
            folder.chmod(0o555)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    assert found["subject"] == "all topics"
    assert found["what"].startswith(f"2 topics can't be written to, {home}/warehouse/keptlog/odd first, ")
    assert f"chmod -R g+rwX {home}/warehouse/keptlog, " in found["todo"]


def test_who_may_not_read_the_receipts_asks_for_an_erasure_under_no_id_that_may_have_been_verified(
    user: Run, keptlog: Run, home: Path
) -> None:
    """It was asked anew, and took what its customer had written since. An id that is made now has no receipt."""
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    (home / "warehouse/keptlog_receipts/chain/receipts").chmod(0)
    told = user("erase", "odd", "--key", "ada-7", "--yes", "--run-id", "r1")
    assert told.code == 1
    assert "topic odd: whether request r1 was verified there before can't be told, so nothing is asked" in told.err
    assert "see to its permissions" in told.err
    assert user("erase", "odd", "--key", "ada-7", "--yes").code == 0


@pytest.mark.parametrize("mode", [0, 0o333], ids=["shut", "only not listed"])
def test_doctor_names_a_folder_of_receipts_that_can_not_be_listed_and_goes_on(
    user: Run, keptlog: Run, home: Path, mode: int
) -> None:
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    metadata, chain = home / "warehouse/keptlog/odd/metadata", home / "warehouse/keptlog_receipts/chain"
    metadata.chmod(0o555)
    (chain / "metadata").chmod(0o555)
    (chain / "receipts").chmod(mode)
    check = checks_of(user("doctor", "--no-probes", "--json"))["disk"]
    named = {each["subject"]: each["files"] for each in check["problems"]}
    assert (named, check["not_looked_at"]) == (
        {"odd": [str(metadata)], "receipts": [str(chain / "metadata"), str(chain / "receipts")]},
        [],
    )


def test_doctor_says_nothing_of_a_catalog_of_a_home_that_uses_another(
    user: Run, keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home / "other.db", monkeypatch)
    assert keptlog("topic", "create", "users").code == 0
    (home / "catalog.db").chmod(0o444)
    shut = home / "lake/keptlog/users/metadata"
    shut.chmod(0o555)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    assert (found["subject"], found["files"]) == ("users", [str(shut)])


def test_doctor_names_a_home_without_its_own_catalog_that_can_not_be_written_to_and_goes_on(
    user: Run, keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All was fine, and then no secret could be made there, and nothing was remembered."""
    (tmp_path / "elsewhere").mkdir()
    configure(tmp_path / "elsewhere/other.db", monkeypatch)
    assert keptlog("topic", "create", "users").code == 0
    shut = tmp_path / "elsewhere/lake/keptlog/users/metadata"
    for folder in (home, shut):
        folder.chmod(0o555)
    found = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    follows = "so what is found is not remembered, and no secret or key can be made there"
    assert [each["subject"] for each in found] == [str(home), "users"]
    assert found[0]["what"] == f"{home} can't be written to by this user, {follows}"
    home.chmod(0o755)
    (tmp_path / "elsewhere/other.db").chmod(0o444)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    assert found["subject"] == str(tmp_path / "elsewhere/other.db")
    assert "so this user can change nothing of this home" in found["what"]
    shut.chmod(0o755)


@pytest.mark.parametrize("is_home_shut", [False, True], ids=["catalog", "home"])
def test_doctor_tells_who_may_write_nowhere_one_thing(user: Run, home: Path, *, is_home_shut: bool) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    if not is_home_shut:
        home.chmod(0o755)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["disk"]["problems"]
    assert found["subject"] == str(home if is_home_shut else home / "catalog.db")
    assert "can't be written to" in found["what"]
    assert "dmesg" not in found["todo"]


def test_a_log_whose_folder_is_another_users_is_told_to_all_and_cleaned_at_once_by_who_may_and_names_it(
    user: Run, keptlog: Run, home: Path, lines: Callable[..., str]
) -> None:
    assert keptlog("topic", "alter", "odd", "--config", "segment.ms=1").code == 0
    assert keptlog("append", "odd", "--file", lines({"key": "a", "value": "2"})).code == 0
    folder = home / "warehouse/keptlog/odd/data/partition=0"
    folder.chmod(0o555)
    told = user("clean", "odd-0", "--quiet")
    assert (told.code, told.err.splitlines()[-1]) == (
        1,
        f"keptlog: odd-0: user {user_name()} may not write to {folder} (Permission denied); nothing was committed: "
        "see to its permissions, then run it again",
    )
    why = f"1 clean failed with: user {user_name()} may not write to {folder} (Permission denied)"
    assert why in keptlog("status").out
    assert why in keptlog("notify", "--dry-run").out
    folder.chmod(0o755)
    assert user("clean", "odd-0", "--quiet").code == 0
    assert "uncleanable since" not in keptlog("status").out


def test_a_home_that_may_not_be_entered_is_one_problem_of_the_home(user: Run, home: Path) -> None:
    home.chmod(0)
    told = user("doctor", "--no-probes", "--json")
    checks = checks_of(told)
    assert (told.code, told.err) == (1, "")
    assert [name for name, each in checks.items() if each["problems"]] == ["home"]
    [found] = checks["home"]["problems"]
    assert (found["subject"], f"home {home} can't be entered" in found["what"]) == (str(home), True)
    assert found["cause"].startswith("a right is missing: ")
    assert {each["diagnosis"] for name, each in checks.items() if name != "home"} == {"not looked at"}


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "plan",
        "topic list",
        "topic create new",
        "explain odd-0",
        "read odd",
        "verify",
        "purge --yes",
        "receipt verify",
        "ingest kafka --bootstrap 127.0.0.1:1 --topic odd",
        "notify --dry-run",
        "notify --once",
    ],
)
def test_each_command_says_in_one_line_that_the_home_may_not_be_entered(
    user: Run, home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("KEPTLOG_NOTIFY_LOG", "true")
    home.chmod(0)
    told = user(*command.split())
    assert (told.code, told.out) == (1, "")
    assert told.err.splitlines() == [
        f"keptlog: home {home} can't be entered by this user (Permission denied): see to its permissions, or set "
        "KEPTLOG_HOME to the home that you mean"
    ]


def test_metrics_of_a_home_that_may_not_be_entered_say_that_it_is_down(user: Run, home: Path) -> None:
    home.chmod(0)
    told = user("metrics", "write", "-")
    assert (told.code, "keptlog_up 0.0\n" in told.out) == (1, True)
    assert f"home {home} can't be entered by this user (Permission denied)" in told.err


def test_a_key_and_a_secret_of_another_user_are_not_looked_at(user: Run, keptlog: Run, home: Path) -> None:
    signing_key(home, {})
    assert keptlog("erase", "odd", "--key", "a", "--by", "60d", "--yes").code == 0
    for name in ("receipts.key", "erasure.secret"):
        (home / name).chmod(0)
    checks = checks_of(user("doctor", "--no-probes", "--json"))
    for check, name in (("receipts", "receipts.key"), ("erasure records", "erasure.secret")):
        assert str(home / name) in "".join(checks[check]["not_looked_at"])
        assert "Permission denied" in "".join(checks[check]["not_looked_at"])
    assert checks["erasure records"]["problems"] == []


def test_what_remembers_changes_and_may_not_be_read_costs_only_itself(user: Run, keptlog: Run, home: Path) -> None:
    runs = home / "warehouse/keptlog/odd/metadata/receipts/runs"
    runs.mkdir(parents=True)
    (runs / "1700000000000-a.json").write_text("{}")
    (runs / "1700000000000-a.json").chmod(0)
    checks = checks_of(user("doctor", "--no-probes", "--json"))
    [unseen] = checks["changes"]["not_looked_at"]
    assert (checks["topics"]["diagnosis"], checks["changes"]["diagnosis"]) == ("fine", "not looked at")
    assert "odd" in unseen
    assert "Permission denied" in unseen
    [damaged] = checks_of(keptlog("doctor", "--no-probes", "--json"))["changes"]["problems"]
    assert damaged["subject"] == "odd"


def test_a_chain_of_receipts_that_may_not_be_read_is_no_damage(user: Run, keptlog: Run, home: Path) -> None:
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    (home / "warehouse/keptlog_receipts/chain").chmod(0)
    [found] = checks_of(user("doctor", "--no-probes", "--json"))["receipts"]["problems"]
    assert (found["subject"], found["command"]) == ("receipts", None)
    assert "Permission denied" in found["what"]
    assert found["cause"].startswith("a right is missing: ")
    assert found["todo"].endswith("put nothing back from a copy")


def test_a_register_of_erasures_that_may_not_be_read_costs_only_itself(user: Run, keptlog: Run, home: Path) -> None:
    assert keptlog("erase", "odd", "--key", "a", "--by", "60d", "--yes").code == 0
    [register] = home.glob("warehouse/keptlog/odd/metadata/receipts/erasures/*.json")
    register.chmod(0)
    checks = checks_of(user("doctor", "--no-probes", "--json"))
    assert (checks["topics"]["diagnosis"], checks["files"]["diagnosis"]) == ("fine", "fine")
    [found] = checks["erasure records"]["problems"]
    assert (found["subject"], str(register) in found["what"]) == ("odd", True)
    assert found["cause"].startswith("a right is missing: ")
    assert found["todo"].endswith("put nothing back from a copy")


@pytest.mark.parametrize("which", ["metadata.json", "m0.avro"])
def test_a_folder_in_place_of_a_metadata_file_is_damage_and_no_outage(
    keptlog: Run, user: Run, home: Path, which: str
) -> None:
    del user
    path = max((home / "warehouse/keptlog/odd/metadata").glob(f"*{which}"))
    path.unlink()
    path.mkdir()
    told = keptlog("doctor", "--no-probes", "--json")
    [found] = checks_of(told)["topics"]["problems"]
    assert (told.code, found["subject"]) == (1, "odd")
    assert str(path) in found["what"]
    assert found["cause"].startswith("the file was cut off, written over or deleted by something else")

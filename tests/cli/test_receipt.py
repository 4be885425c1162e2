"""``keptlog receipt``: what people and scripts are told. Whoever checks files needs no home, and imports none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.home import open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.receipts.coverage import NOT_COVERED
from keptlog.receipts.receipt import Draft

ROOT = Path(__file__).parents[2]
OPENS_A_HOME = ("pyiceberg", "sqlalchemy", "sqlite3", "pyspark", "pyarrow", "dagster", "requests", "urllib3", "socket")
FORBIDDEN = """
import sys
from importlib.abc import MetaPathFinder

class Forbidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names} or name.startswith(("keptlog.table", "keptlog.home", "keptlog.passes")):
            raise ImportError("whoever checks files needs no " + name)

sys.meta_path.insert(0, Forbidden())
from keptlog.cli import main
main()
"""
FILES = [
    {
        "path": "file:///x/a.parquet",
        "bytes": 3000,
        "partition": 0,
        "first_offset": 0,
        "last_offset": 99,
        "why": "retired",
    },
    {"path": "file:///x/b.parquet", "bytes": 10, "why": "orphan"},
]
HELD = [{"path": "file:///x/c.parquet", "bytes": 5, "holder": "tag audit"}]
DRAFTS = [
    Draft("5f2c", "purge", 1_700_000_000_000, {"topic": "users", "files": FILES, "held_files": HELD}),
    Draft("77aa", "topic-delete", 1_700_000_001_000, {"topic": "users", "files": FILES[:1], "held_files": None}),
    Draft("e1", "erasure", 1_700_000_002_000, {"topics": ["users", "orders"], "requested_at_ms": 1_700_000_000_000}),
]


class Terminal:
    """Runs ``keptlog receipt`` in a folder; ``offline`` in a Python that can't import what opens a home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, home: str = "home", offline: bool = False) -> subprocess.CompletedProcess[str]:
        how = ["-c", FORBIDDEN.format(names=OPENS_A_HOME)] if offline else ["-m", "keptlog"]
        return subprocess.run(
            [sys.executable, *how, "receipt", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "KEPTLOG_HOME": home},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def sealed(terminal: Terminal) -> Terminal:
    """A home with three receipts, and an export of them."""
    receipts = open_home(terminal.folder / "home").receipts
    receipts.chain.append(DRAFTS)
    assert receipts.export(terminal.folder / "export") == 3
    return terminal


def test_a_home_without_receipts_says_so(terminal: Terminal) -> None:
    open_home(terminal.folder / "home").create_topic("users")
    for command in ("list", "verify"):
        said = terminal.run(command)
        assert (said.returncode, said.stdout, said.stderr) == (0, "no receipts yet\n", "")


def test_an_export_without_receipts_names_no_public_key_for_there_is_none(terminal: Terminal) -> None:
    open_home(terminal.folder / "home").create_topic("users")
    said = terminal.run("export", "none")
    assert (said.returncode, said.stdout, said.stderr) == (0, "0 receipts in none\n", "")


def test_receipts_are_listed_all_or_those_of_a_topic(sealed: Terminal) -> None:
    lines = sealed.run("list").stdout.splitlines()
    assert lines[0].split() == ["number", "done", "kind", "topic", "files", "size", "id"]
    assert lines[1].split() == ["1", "2023-11-14T22:13:20.000Z", "purge", "users", "2", "2.9", "KiB", "5f2c"]
    listed = json.loads(sealed.run("list", "--topic", "orders", "--json").stdout)
    assert [each["id"] for each in listed["receipts"]] == ["e1"]


@pytest.mark.parametrize("name", ["1", "5f2c"])
def test_a_receipt_is_shown_in_words(sealed: Terminal, name: str) -> None:
    said = sealed.run("show", name)
    assert said.returncode == 0
    for part in (
        "receipt 1: purge of topic users",
        "done      2023-11-14T22:13:20.000Z",
        "deleted   2 files, 2.9 KiB",
        "replaced by a clean or a retention, and past their delay: 1 file, 2.9 KiB",
        "left by runs that failed or were killed: 1 file, 10 B",
        "file:///x/a.parquet, 2.9 KiB, partition 0, offsets 0 to 99",
        "still held then, tag audit: 1 file, 5 B",
        "not covered by this receipt:",
        *NOT_COVERED,
    ):
        assert part in said.stdout


def test_what_was_not_looked_at_is_not_told_as_nothing(sealed: Terminal) -> None:
    said = sealed.run("show", "77aa").stdout
    assert "what else still held values was not looked at" in said
    assert "nothing else was known" not in said


def test_a_kind_that_is_not_known_is_shown_whole(sealed: Terminal) -> None:
    said = sealed.run("show", "3").stdout
    assert "receipt 3: erasure of topic users, orders" in said
    assert "requested at: 2023-11-14T22:13:20.000Z" in said


def test_as_json_a_receipt_is_its_file(sealed: Terminal) -> None:
    shown = sealed.run("show", "1", "--json").stdout
    assert shown.encode() == (sealed.folder / "export" / "000000000001-5f2c.json").read_bytes()


def test_a_receipt_that_is_not_there_is_bad_input(sealed: Terminal) -> None:
    said = sealed.run("show", "9")
    assert (said.returncode, said.stderr) == (2, "keptlog: there is no receipt '9': see keptlog receipt list\n")


def test_the_chain_of_a_home_is_verified(sealed: Terminal) -> None:
    said = sealed.run("verify")
    assert said.returncode == 0
    assert said.stdout.startswith("3 receipts, 1 to 3, signed by key ")
    assert said.stdout.endswith(": unchanged, and none is missing\n")


def test_a_receipt_that_is_gone_from_the_home_is_named(sealed: Terminal) -> None:
    (stored,) = (sealed.folder / "home" / "warehouse" / "keptlog_receipts").rglob("000000000002-*.json")
    stored.unlink()
    said = sealed.run("verify")
    assert said.returncode == 1
    assert "  missing: receipt 2 is missing\n" in said.stdout
    listed = sealed.run("list")
    assert listed.returncode == 1
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["number", "1", "3"]
    assert "no file of receipt 2 is in" in listed.stderr


def test_files_are_verified_without_a_home_and_without_what_opens_one(sealed: Terminal) -> None:
    said = sealed.run("verify", "export", "--public-key", "home/receipts.pub", home="none", offline=True)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.endswith(": unchanged, and none is missing\n")
    assert not (sealed.folder / "none").exists()
    assert "needs no keptlog.table" in sealed.run("list", offline=True).stderr  # such an import would be seen


def test_an_export_names_every_key_that_is_needed_to_check_it(sealed: Terminal) -> None:
    (sealed.folder / "home" / "receipts.key").unlink()
    open_home(sealed.folder / "home").receipts.chain.append(
        [Draft("9c", "purge", 1_700_000_003_000, {"topic": "users"})]
    )
    said = sealed.run("export", "later").stdout.splitlines()
    _, _, command = said[-1].partition("keptlog receipt ")
    assert said == ["4 receipts in later", f"to check them: keptlog receipt {command}"]
    assert command.count("--public-key ") == 2
    checked = sealed.run(*command.split())
    assert (checked.returncode, checked.stdout.endswith(": unchanged, and none is missing\n")) == (0, True)


def test_files_that_were_changed_are_named(sealed: Terminal) -> None:
    path = sealed.folder / "export" / "000000000002-77aa.json"
    path.write_bytes(path.read_bytes().replace(b"users", b"usurs"))
    said = sealed.run("verify", "export", "--public-key", "home/receipts.pub", offline=True)
    assert said.returncode == 1
    assert "damaged: file export/000000000002-77aa.json, receipt 2, is not what key" in said.stdout
    found = json.loads(sealed.run("verify", "export", "--json").stdout)
    assert (found["is_sound"], found["receipts"]) == (False, 2)
    assert [(each["flaw"], each["sequences"]) for each in found["findings"]] == [("damaged", [2])]


def test_without_its_head_the_end_of_a_chain_can_not_be_told(sealed: Terminal) -> None:
    (sealed.folder / "export" / "head.json").unlink()
    said = sealed.run("verify", "export")
    assert said.returncode == 1
    assert "whether receipts are missing at the end can't be told" in said.stdout


def test_a_single_receipt_is_verified_as_a_part(sealed: Terminal) -> None:
    file = "export/000000000002-77aa.json"
    said = sealed.run("verify", file)
    assert said.returncode == 1
    assert "receipt 1 is missing" in said.stdout
    said = sealed.run("verify", file, "--part")
    assert said.returncode == 0
    assert said.stdout.startswith("1 receipt, number 2, signed by key ")
    assert said.stdout.endswith(": unchanged\n")


@pytest.mark.parametrize("option", [(), ("--part",)])
@pytest.mark.parametrize("named", ["none", "export/head.json"])
def test_where_no_receipt_is_nothing_is_proved(sealed: Terminal, named: str, option: tuple[str, ...]) -> None:
    (sealed.folder / "none").mkdir()
    (sealed.folder / "none" / "000000000001-5f2c.json.gz").touch()

    said = sealed.run("verify", named, *option)

    assert said.returncode == 1
    assert said.stdout.startswith("no receipt is as it was signed by a key that is trusted")
    assert "missing: " in said.stdout


def test_without_a_public_key_nothing_is_proved(sealed: Terminal) -> None:
    said = sealed.run("verify", "export", home="none")
    assert said.returncode == 2
    assert said.stderr.startswith("keptlog: no public key to trust: name it with --public-key")
    said = sealed.run("verify", "export", "--public-key", "gone.pub")
    assert said.returncode == 2


def test_a_signer_that_is_not_known_is_a_failure_and_is_named(sealed: Terminal) -> None:
    assert open_home(sealed.folder / "other").receipts.chain.append(DRAFTS[:1])
    said = sealed.run("verify", "export", "--public-key", "other/receipts.pub")
    assert said.returncode == 1
    assert said.stdout.startswith("no receipt is as it was signed by a key that is trusted\n")
    assert "receipts 1 to 3 and the head are signed with key" in said.stdout
    said = sealed.run("verify", "export", "--public-key", "other/receipts.pub", "--public-key", "home/receipts.pub")
    assert said.returncode == 0


def test_an_export_goes_on_where_an_earlier_one_ended_and_overwrites_nothing(sealed: Terminal) -> None:
    receipts = open_home(sealed.folder / "home").receipts
    receipts.chain.append([Draft("8", "purge", 0, {"topic": "users"})])
    said = sealed.run("export", "export")
    assert (said.returncode, said.stdout.splitlines()[0]) == (0, "4 receipts in export")
    assert sealed.run("verify", "export").returncode == 0
    path = sealed.folder / "export" / "000000000003-e1.json"
    path.write_bytes(b"{}")
    said = sealed.run("export", "export")
    assert said.returncode == 2
    assert "000000000003-e1.json is there, and is not what this home's chain has" in said.stderr
    assert path.read_bytes() == b"{}"


@pytest.mark.parametrize("other", ["notes.json", "below/00001-1.metadata.json"])
def test_no_export_goes_where_json_would_be_taken_for_damaged_receipts(sealed: Terminal, other: str) -> None:
    path = sealed.folder / "mixed" / other
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    said = sealed.run("export", "mixed")
    assert (said.returncode, said.stdout, len(said.stderr.splitlines())) == (2, "", 1)
    assert f"mixed/{other} is no receipt" in said.stderr
    assert [each for each in (sealed.folder / "mixed").rglob("*") if each.is_file()] == [path]


def test_an_export_goes_beside_other_files_and_receipts_of_other_names(sealed: Terminal) -> None:
    folder = sealed.folder / "export"
    (folder / "000000000002-77aa.json").rename(folder / "second.json")
    (folder / "head.json").rename(folder / "end.json")
    (folder / "letter.txt").write_text("to the auditor")
    assert sealed.run("export", "export").returncode == 0
    assert sealed.run("verify", "export").returncode == 0


@pytest.mark.parametrize("sealed_anew", [0, 1, 2], ids=["shorter", "as long", "longer"])
def test_an_export_keeps_the_head_of_a_chain_that_was_put_back(sealed: Terminal, sealed_anew: int) -> None:
    """It is the only witness of what is missing."""
    home, head = sealed.folder / "home", sealed.folder / "export/head.json"
    backup = (home / "catalog.db").read_bytes()
    open_home(home).receipts.chain.append([Draft("lost", "purge", 0, {"topic": "users"})])
    assert sealed.run("export", "export").returncode == 0
    newest = head.read_bytes()
    (home / "catalog.db").write_bytes(backup)
    for number in range(sealed_anew):
        open_home(home).receipts.chain.append([Draft(f"anew-{number}", "purge", 0, {"topic": "users"})])
    said = sealed.run("export", "export")
    assert (said.returncode, head.read_bytes()) == (2, newest)
    assert "tells of receipt 4, which this home's chain has lost or has another one for" in said.stderr


def test_purges_and_deletions_of_topics_leave_receipts_that_outlive_them(terminal: Terminal) -> None:
    home = open_home(terminal.folder / "home")
    home.create_topic("users", config={"cleanup.policy": "delete", "file.delete.delay.ms": "0"})
    home.append("users", [NewRecord(b"ada", b"1", 1_700_000_000_000)])
    home.store.delete_records(TopicPartition("users", 0), -1, None)
    result = home.purger.purge(now_ms=wall_clock_ms() + 60_000)
    assert result.failed == {}
    (purge,) = home.receipts.list("users")
    assert purge.kind == "purge"
    assert {each["why"] for each in purge.content["files"]} == {"retired"}
    assert [each["first_offset"] for each in purge.content["files"] if each["partition"] == 0] == [0]
    home.delete_topic("users")
    kinds = [each.kind for each in open_home(terminal.folder / "home").receipts.list("users")]
    assert kinds == ["purge", "topic-delete"]
    assert not list((terminal.folder / "home" / "warehouse" / "keptlog").rglob("*.*"))
    assert terminal.run("verify").returncode == 0
    shown = terminal.run("show", "1").stdout
    assert "receipt 1: purge of topic users" in shown
    assert "replaced by a clean or a retention, and past their delay: " in shown
    assert "offsets 0 to 0" in shown
    assert terminal.run("show", "2").stdout.startswith("receipt 2: deletion of topic users\n")


def test_a_part_of_a_home_is_no_question(sealed: Terminal) -> None:
    assert sealed.run("verify", "--part").returncode == 2


def test_a_chain_that_the_catalog_has_lost_is_not_told_as_no_receipts_yet(sealed: Terminal) -> None:
    open_home(sealed.folder / "home").store.committer.catalog.drop_table(("keptlog_receipts", "chain"))
    for command in (["list"], ["verify"], ["export", "again"]):
        said = sealed.run(*command)
        assert (said.returncode, "no receipts yet" in said.stdout) == (1, False)
        assert "3 receipts of an earlier chain, which the catalog no longer knows" in said.stdout + said.stderr
    named = said.stderr.partition("keptlog receipt verify ")[2].partition(" checks them")[0]
    assert sealed.run("verify", named).stdout.startswith("3 receipts, 1 to 3")


@pytest.mark.parametrize("is_named", [False, True])
def test_nor_is_one_of_which_no_file_is_left_whoever_names_the_key(sealed: Terminal, *, is_named: bool) -> None:
    home = sealed.folder / "home"
    open_home(home).store.committer.catalog.drop_table(("keptlog_receipts", "chain"))
    shutil.rmtree(home / "warehouse" / "keptlog_receipts")
    said = sealed.run("verify", *(["--public-key", str(home / "receipts.pub")] if is_named else []))
    assert (said.returncode, "no receipts yet" in said.stdout) == (1, False)
    whose = "a public key of who signs was named" if is_named else "this home has the public key of who signs"
    assert f"the catalog has no chain of receipts, and {whose} (key " in said.stdout


def test_a_receipt_that_was_changed_is_not_shown_as_signed(sealed: Terminal) -> None:
    folder = sealed.folder / "home" / "warehouse" / "keptlog_receipts" / "chain"
    [path] = [each for each in folder.rglob("*.json") if "5f2c" in each.name]
    path.write_bytes(path.read_bytes().replace(b"1700000000000", b"1600000000000"))
    for words in (("show", "1"), ("show", "1", "--json")):
        said = sealed.run(*words)
        assert said.returncode == 1
        assert "receipt 1 is not what key" in said.stderr + said.stdout
        assert "signed    by" not in said.stdout
    assert sealed.run("show", "2").returncode == 0


def test_a_receipt_of_a_key_that_is_not_known_here_is_shown_as_not_checked(sealed: Terminal) -> None:
    for path in (sealed.folder / "home").glob("receipts*.pub"):
        path.unlink()
    said = sealed.run("show", "1")
    assert said.returncode == 0
    assert "(not checked: this home has no such public key)" in said.stdout


def test_an_export_names_no_public_key_that_is_not_there(sealed: Terminal) -> None:
    (sealed.folder / "home" / "receipts.pub").unlink()
    said = sealed.run("export", "later").stdout.splitlines()
    assert said == [
        "3 receipts in later",
        "to check them: keptlog receipt verify later --public-key FILE",
        f"no public key is seen in {sealed.folder / 'home'}: FILE is receipts.pub of the home that signed",
    ]

"""``keptlog topic apply`` and ``export``: the files of docs/topics.md, and what is printed there, are tried here."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run
from tests.test_style import ROOT

_FENCE = re.compile(r"^```(?:yaml|text) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = dict(_FENCE.findall((ROOT / "docs" / "topics.md").read_text(encoding="utf-8")))


@pytest.fixture
def topics(home: Path, tmp_path: Path) -> Path:
    """The page's file, in the working directory."""
    path = tmp_path / "topics.yaml"
    path.write_text(PAGE["topics.yaml"])
    return path


def test_the_file_of_the_page_prints_what_the_page_shows(keptlog: Run, topics: Path) -> None:
    dry = keptlog("topic", "apply", "topics.yaml", "--dry-run")
    assert (dry.code, open_home().topics()) == (0, [])
    first = keptlog("topic", "apply", "topics.yaml")
    assert (first.code, first.out, first.err) == (0, PAGE["first"], "")
    assert first.out.startswith(dry.out)
    changed = PAGE["topics.yaml"].replace("partitions: 4", "partitions: 6")
    topics.write_text(changed.replace("      max.compaction.lag.ms: 86400000\n", ""))
    assert keptlog("topic", "apply", "topics.yaml").out == PAGE["then"]
    again = keptlog("topic", "apply", "topics.yaml")
    assert (again.code, again.out) == (0, "0 to create, 0 to alter, 0 to delete, 2 topics as declared\n")


def test_topics_share_settings_through_an_anchor(keptlog: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text(PAGE["shared.yaml"])
    assert keptlog("topic", "apply", "shared.yaml").code == 0
    configs = {name: open_home().describe_topic(name).raw_config for name in ("users", "customers")}
    profiles = {"cleanup.policy": "compact", "max.compaction.lag.ms": "86400000"}
    assert configs == {"users": profiles, "customers": profiles | {"min.cleanable.dirty.ratio": "0.2"}}


def test_describe_shows_what_a_topic_is_and_whose(keptlog: Run, topics: Path) -> None:
    keptlog("topic", "apply", "topics.yaml")
    described = keptlog("topic", "describe", "users")
    assert "One record for each user of the shop.\nowned by team:crm, ada@example.com\n" in described.out
    as_json = keptlog("topic", "describe", "users", "--json").json
    assert as_json["description"] == "One record for each user of the shop."
    assert as_json["owners"] == ["team:crm", "ada@example.com"]
    other = keptlog("topic", "describe", "orders", "--json").json
    assert (other["description"], other["owners"], other["source"]["topic"]) == (None, [], "shop.orders")


def test_what_is_exported_is_no_difference(keptlog: Run, topics: Path, tmp_path: Path) -> None:
    keptlog("topic", "apply", "topics.yaml")
    exported = keptlog("topic", "export")
    assert (exported.code, exported.err) == (0, "")
    for text in (exported.out, keptlog("topic", "export", "--json").out):
        (tmp_path / "exported.yaml").write_text(text)
        assert keptlog("topic", "apply", "exported.yaml", "--dry-run", "--exit-code").code == 0
    assert list(keptlog("topic", "export", "users", "--json").json["topics"]) == ["users"]
    assert keptlog("topic", "export", "nobody").code == 2


def test_exit_codes_tell_differences_only_where_that_is_asked(keptlog: Run, topics: Path) -> None:
    assert keptlog("topic", "apply", "topics.yaml", "--dry-run").code == 0
    assert keptlog("topic", "apply", "topics.yaml", "--dry-run", "--exit-code").code == 1
    refused = keptlog("topic", "apply", "topics.yaml", "--exit-code")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    keptlog("topic", "apply", "topics.yaml")
    assert keptlog("topic", "apply", "topics.yaml", "--dry-run", "--exit-code").code == 0


def test_as_data_it_is_the_same(keptlog: Run, topics: Path) -> None:
    keptlog("topic", "create", "other")
    done = keptlog("topic", "apply", "topics.yaml", "--json").json
    assert [(each["topic"], each["action"]) for each in done["changes"]] == [("users", "create"), ("orders", "create")]
    assert {"what": "partitions", "before": None, "after": "4"} in done["changes"][0]["differences"]
    assert (done["done"], done["undeclared"], done["errors"]) == (["users", "orders"], ["other"], [])
    planned = keptlog("topic", "apply", "topics.yaml", "--dry-run", "--delete", "other", "--json").json
    assert (planned["changes"], planned["deletions"], planned["unchanged"]) == ([], ["other"], ["users", "orders"])


def test_what_is_wrong_is_told_line_by_line_and_nothing_is_changed(keptlog: Run, home: Path, tmp_path: Path) -> None:
    lines = ["topics:", "  users:", "    partitions: four", "    config:", "      cleanup.polcy: compact", "  users:"]
    (tmp_path / "wrong.yaml").write_text("\n".join([*lines, "  fine: {}", ""]))
    refused = keptlog("topic", "apply", "wrong.yaml")
    assert (refused.code, refused.out, refused.err) == (2, "", PAGE["refused"])
    assert not home.exists()


def test_what_is_refused_is_a_document_with_an_error_a_place(keptlog: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("topics:\n  users:\n    config:\n      no.such: 1\n    partitions: four\n")
    refused = keptlog("topic", "apply", "bad.yaml", "--json")
    first, second = refused.json["errors"]
    assert (refused.code, refused.json.keys()) == (2, {"schema_version", "errors"})
    assert first["message"].startswith("bad.yaml:4: topic users: ")
    assert (first["kind"], first["subject"], first["action"]) == ("InvalidConfig", "bad.yaml:4", "fix_config")
    assert second["message"].startswith("bad.yaml:5: topic users: partitions is 'four'")
    assert refused.err == f"keptlog: {first['message']}\nkeptlog: {second['message']}\n"
    assert not home.exists()


def test_a_file_that_is_not_there_is_one_line(keptlog: Run) -> None:
    refused = keptlog("topic", "apply", "none.yaml")
    assert (refused.code, refused.err) == (2, "keptlog: none.yaml can't be read: No such file or directory\n")


def test_only_named_topics_are_deleted_and_only_after_a_question(
    keptlog: Run, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "other"):
        keptlog("topic", "create", name)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"n\n")))
    asked = keptlog("topic", "apply", "topics.yaml", "--delete", "old")
    assert asked.code != 0
    assert "delete old and all their records for good?" in asked.err
    assert [each["topic"] for each in keptlog("topic", "list", "--json").json["topics"]] == ["old", "other"]
    deleted = keptlog("topic", "apply", "topics.yaml", "--delete", "old", "--yes")
    assert deleted.code == 0
    assert "- old, with all its records\nleft alone, because topics.yaml does not name them: other\n" in deleted.out
    assert "deleted old: 1 file\nold: receipt deletion-" in deleted.out
    again = keptlog("topic", "apply", "topics.yaml", "--delete", "old", "--yes")
    assert again.code == 0
    assert "old is not there: nothing to delete\n" in again.out


def test_standard_input_is_a_file_too_and_nobody_can_be_asked_then(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "old")
    for options, code in ((["--delete", "old"], 2), (["--delete", "old", "--yes"], 0)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"topics: {new: {}}")))
        assert keptlog("topic", "apply", "-", *options).code == code
    assert [each["topic"] for each in keptlog("topic", "list", "--json").json["topics"]] == ["new"]


def test_a_topic_that_cant_be_read_is_one_line_and_code_1_and_the_others_are_done(
    keptlog: Run, home: Path, tmp_path: Path
) -> None:
    keptlog("topic", "create", "a")
    table = open_home().store.load_table("a")
    table.transaction().set_properties({"log.partitions": "some"}).commit_transaction()
    (tmp_path / "topics.yaml").write_text("topics:\n  new: {}\n  a: {}\n")
    shown = keptlog("topic", "apply", "topics.yaml", "--dry-run")
    assert (shown.code, shown.out.splitlines()[0], shown.err.count("\n")) == (1, "+ new", 1)
    assert shown.err.startswith("keptlog: a: topic a: property log.partitions='some'")
    as_data = keptlog("topic", "apply", "topics.yaml", "--json")
    [error] = as_data.json["errors"]
    assert (error["kind"], error["action"], error["subject"]) == ("LogCorrupt", "fix_data", "a")
    assert (as_data.code, as_data.json["done"], as_data.json["not_tried"]) == (1, ["new"], [])
    again = keptlog("topic", "apply", "topics.yaml")
    assert (again.code, again.err) == (1, shown.err)
    exported = keptlog("topic", "export")
    assert (exported.code, exported.err.count("\n")) == (1, 1)


def test_a_topic_that_fails_stops_no_other_and_the_same_again_does_it(keptlog: Run, topics: Path, home: Path) -> None:
    keptlog("topic", "create", "old")
    in_the_way = home / "warehouse" / "keptlog" / "users"
    in_the_way.write_text("no folder can be made here")
    failed = keptlog("topic", "apply", "topics.yaml", "--delete", "old", "--yes")
    assert failed.code == 1
    [users] = failed.err.splitlines()
    assert users.startswith("keptlog: users: topic users can't be created: ")
    assert [each["topic"] for each in keptlog("topic", "list", "--json").json["topics"]] == ["orders"]
    in_the_way.unlink()
    again = keptlog("topic", "apply", "topics.yaml", "--delete", "old", "--yes")
    assert (again.code, again.err) == (0, "")
    assert [each["topic"] for each in keptlog("topic", "list", "--json").json["topics"]] == ["orders", "users"]


def test_a_copied_home_is_compared_and_not_changed(
    keptlog: Run, topics: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "users")
    shutil.copytree(home, tmp_path / "copy")
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "copy"))
    assert keptlog("topic", "apply", "topics.yaml", "--dry-run").code == 0
    refused = keptlog("topic", "apply", "topics.yaml")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "use KEPTLOG_HOME=" in refused.err


def test_a_program_applies_a_file(topics: Path, home: Path) -> None:
    opened = open_home()
    opened.create_topic("old")
    applied = opened.apply(topics, delete=["old"])
    assert (applied.done, dict(applied.failed), list(applied.deletions)) == (("users", "orders"), {}, ["old"])
    assert opened.describe_topic("users").about.owners == ("team:crm", "ada@example.com")


def test_an_empty_policy_is_shown_and_carried_out(keptlog: Run, home: Path, tmp_path: Path) -> None:
    """It passed for a topic as declared, and retention took what the file says to keep."""
    created = keptlog("topic", "create", "kept", "--config", "cleanup.policy=delete")
    assert "cleanup.policy is delete, Kafka's default: it will" in created.err
    assert "cleanup.policy is empty: it will" in keptlog("topic", "create", "old", "--config", "cleanup.policy=").err
    (tmp_path / "t.yaml").write_text(
        "topics:\n  kept: {config: {cleanup.policy: ''}}\n  new: {config: {cleanup.policy: ''}}\n  old: {}\n"
    )
    done = keptlog("topic", "apply", "t.yaml")
    assert done.out.startswith(
        "~ kept\n    cleanup.policy: delete -> empty\n"
        "+ new\n    partitions: 1\n    cleanup.policy: empty\n    (cleanup.policy is empty: it will not be compacted)\n"
        "~ old\n    cleanup.policy: empty -> delete, the default\n"
        "    (segments with nothing younger than retention.ms=604800000 (7 d) will be deleted)\n"
    )
    policies = [open_home().describe_topic(name).config.cleanup_policy for name in ("kept", "new", "old")]
    assert policies == [(), (), ("delete",)]
    assert "3 topics as declared" in keptlog("topic", "apply", "t.yaml").out

"""``keptlog notify``: a log that breaks and is mended, told to real servers; and what must not be told twice."""

from __future__ import annotations

import fcntl
import json
import shutil
from typing import Any

import pytest

from keptlog.notify.checks import leave_checks
from tests.notify.conftest import SETTINGS, Scene, told
from tests.notify.servers import HttpInbox, mail_server, web_server


def test_a_log_that_breaks_and_is_mended_is_told_by_two_messages(scene: Scene, posts: HttpInbox) -> None:
    with mail_server() as mails:
        scene.mail(mails)
        scene.topic()
        assert [scene.notify().code for _ in range(2)] == [0, 0]
        assert (posts.posts, mails.mails) == ([], [])
        mend = scene.break_log()
        assert [scene.notify().code for _ in range(4)] == [0] * 4
        mend()
        assert [scene.notify().code for _ in range(4)] == [0] * 4
    assert told(posts) == [("began", "uncleanable", "users-0"), ("cleared", "uncleanable", "users-0")]
    assert len(posts.posts) == 2
    assert [each["Subject"] for each in mails.mails] == [
        "keptlog crm: users-0: uncleanable",
        "keptlog crm: users-0: uncleanable is over",
    ]
    everything = json.dumps(posts.posts) + "".join(each.as_string() for each in mails.mails)
    assert "key-of-a-person" not in everything
    assert "no clean succeeds before its data are repaired" in posts.posts[0]["text"]


def test_a_server_that_is_down_is_told_once_when_it_is_back(scene: Scene) -> None:
    scene.topic()
    with web_server() as inbox:
        scene.webhook(inbox)
    mend = scene.break_log()
    outcomes = [scene.notify() for _ in range(3)]
    assert [each.code for each in outcomes] == [1] * 3
    assert all("not delivered by webhook, it is tried again at the next look" in each.err for each in outcomes)
    with web_server(inbox.port, inbox):
        assert [scene.notify().code for _ in range(3)] == [0] * 3
        assert told(inbox) == [("began", "uncleanable", "users-0")]
        mend()
        scene.notify()
        inbox.status = 503
        assert [scene.notify().code for _ in range(3)] == [1] * 3
        inbox.status = 200
        assert [scene.notify().code for _ in range(3)] == [0] * 3
    assert told(inbox)[1:] == [("cleared", "uncleanable", "users-0")]


def test_a_way_that_is_broken_costs_the_others_nothing(scene: Scene, posts: HttpInbox) -> None:
    with mail_server() as mails:
        scene.mail(mails)
    scene.topic()
    mend = scene.break_log()
    assert [scene.notify().code for _ in range(3)] == [1] * 3
    with mail_server(mails):
        assert scene.notify().code == 0
    mend()
    assert [scene.notify().code for _ in range(3)][-1] == 1
    assert told(posts) == [("began", "uncleanable", "users-0"), ("cleared", "uncleanable", "users-0")]
    assert [each["Subject"] for each in mails.mails] == ["keptlog crm: users-0: uncleanable"]


def test_of_three_hundred_topics_the_broken_one_is_told(scene: Scene, posts: HttpInbox) -> None:
    for number in range(299):
        scene.store.create_topic(f"t{number}", 1, SETTINGS)
    scene.topic()
    scene.notify()
    mend = scene.break_log()
    scene.notify()
    scene.notify()
    assert told(posts) == [("began", "uncleanable", "users-0")]
    leave_checks(scene.home, {f"t{number}-0": {"G1": "a file is damaged"} for number in range(299)})
    mend()
    scene.notify()
    scene.notify()
    assert len(posts.taken) == 3
    assert sorted(len(each["events"]) for each in posts.taken) == [1, 1, 299]
    assert posts.taken[1]["title"] == "keptlog crm: 299 conditions"


def test_a_damaged_memory_is_one_line_and_one_message(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.topic("orders")
    scene.break_log()
    leave_checks(scene.home, {"orders-0": {"G1": "a file is damaged"}})
    scene.notify()
    assert len(posts.posts) == 2
    state = scene.home / "notify" / "state.json"
    damaged = "is damaged, so it is not known what was told"
    whole = state.read_bytes()
    impossible = [whole.replace(b'"returns": 0', b'"returns": ' + number) for number in (b"-5", b"1e400")]
    assert whole not in impossible
    for damage in (b"", b"{}", b"[1]", b"[" * 100_000, b'{"format": 2}', whole[:-30], *impossible):
        state.write_bytes(damage)
        before = len(posts.posts)
        assert scene.notify("--dry-run").err.count(damaged) == 1
        assert state.read_bytes() == damage
        outcome = scene.notify()
        assert outcome.code == 0
        assert outcome.err.count(damaged) == 1
        assert len(outcome.err.splitlines()) == 1
        assert [len(each["events"]) for each in posts.posts[before:]] == [2]
        assert scene.notify().err == ""
        assert (state.parent / "state.json.damaged").read_bytes() == damage
    assert len(posts.posts) == 10


def test_of_two_at_once_only_one_tells(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    folder = scene.home / "notify"
    folder.mkdir()
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = scene.notify()
        assert (outcome.code, posts.posts) == (0, [])
        assert "another notify is at work" in outcome.out
        assert scene.notify("--once", "--json").json["left_alone"]
    scene.notify()
    assert told(posts) == [("began", "uncleanable", "users-0")]


def test_nothing_is_sent_if_it_could_not_be_remembered(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    (scene.home / "notify").write_text("a file in the folder's place")
    outcomes = [scene.notify() for _ in range(3)]
    assert [each.code for each in outcomes] == [1] * 3
    assert all("so it is not known what was told, and nothing is sent" in each.err for each in outcomes)
    assert posts.posts == []


def test_a_dry_run_says_what_holds_and_changes_nothing(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    assert scene.notify("--dry-run").out == "nothing is wrong in what could be looked at\n"
    scene.break_log()
    for _ in range(2):
        outcome = scene.notify("--dry-run")
        assert outcome.code == 1
        assert "users-0 is uncleanable since" in outcome.out
        assert "[told: nobody yet]\nwould be sent by webhook: keptlog crm: users-0: uncleanable\n" in outcome.out
    assert posts.posts == []
    assert not (scene.home / "notify" / "state.json").exists()
    scene.notify()
    as_json = scene.notify("--dry-run", "--json").json
    assert as_json["would_send"] == {"webhook": []}
    assert [(each["subject"], each["told"]) for each in as_json["conditions"]] == [("users-0", ["webhook"])]


def test_a_test_reaches_everybody_and_says_who_is_not_reached(scene: Scene, posts: HttpInbox) -> None:
    with mail_server() as mails:
        scene.mail(mails)
        outcome = scene.notify("--test")
        assert outcome.code == 0
        assert outcome.out.splitlines() == [
            f"delivered by webhook to 127.0.0.1:{posts.port}",
            f"delivered by smtp to 127.0.0.1:{mails.port}",
        ]
    outcome = scene.notify("--test", "--json")
    assert outcome.code == 1
    assert [(each["way"], each["failed"] is None) for each in outcome.json["ways"]] == [
        ("webhook", True),
        ("smtp", False),
    ]
    assert not (scene.home / "notify").exists()


def test_without_a_way_to_anybody_it_is_bad_input(scene: Scene) -> None:
    scene.topic()
    outcome = scene.notify()
    assert outcome.code == 2
    assert outcome.err.startswith("keptlog: nobody can be reached: set KEPTLOG_NOTIFY_WEBHOOK_URL")
    assert scene.notify("--once", "--test").code == 2
    assert scene.notify("--dry-run").code == 0


def test_without_once_it_looks_again_and_again_and_outlives_a_full_disk(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    in_the_way = scene.home / "notify"
    in_the_way.write_text("a file in the folder's place")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if in_the_way.is_file():
            in_the_way.unlink()
        if len(pauses) == 3:
            raise KeyboardInterrupt

    scene.environment.setattr("keptlog.cli.notify.sleep", pause)
    outcome = scene.notify("--every", "7")
    assert (outcome.code, pauses) == (130, [7, 7, 7])
    assert outcome.err.endswith("keptlog: stopped\n")
    assert "so it is not known what was told, and nothing is sent" in outcome.err
    assert told(posts) == [("began", "uncleanable", "users-0")]


def test_each_look_of_many_prints_a_document_also_one_that_could_not_tell(
    scene: Scene, posts: HttpInbox, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.topic()
    in_the_way = scene.home / "notify"
    documents: list[dict[str, Any]] = []

    def pause(_seconds: float) -> None:
        documents.append(json.loads(capsys.readouterr().out))
        if in_the_way.is_file():
            in_the_way.unlink()
        else:
            shutil.rmtree(in_the_way)
            in_the_way.write_text("a file in the folder's place")
        if len(documents) == 3:
            raise KeyboardInterrupt

    scene.environment.setattr("keptlog.cli.notify.sleep", pause)
    assert scene.notify("--json").code == 130
    assert [[error["kind"] for error in each["errors"]] for each in documents] == [[], ["StorageUnavailable"], []]
    assert documents[1].keys() == {"schema_version", "errors"}
    assert posts.posts == []

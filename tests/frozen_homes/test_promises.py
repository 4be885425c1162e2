"""What was promised in a home is kept by whoever opens it later: erasures end, readers are told, the chain goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.home import Home, open_home
from keptlog.passes.clean import Cleaner
from keptlog.passes.erasures.erase import Eraser
from tests.frozen_homes.archive import unpack
from tests.frozen_homes.conftest import ARCHIVES, Frozen, name_of
from tests.frozen_homes.promises import promised, receipts
from tests.frozen_homes.test_clean import FAR_MS
from tests.frozen_homes.writer import DAY_MS
from tests.in_process import in_process_engine
from tests.logs import carry_out


def expectation_of(archive: Path) -> Any:
    return json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())


PROMISED = {archive: expectation_of(archive).get("promised") for archive in ARCHIVES}
"""Archive to what it promises; null before format 1.2."""


def having(*what: str) -> pytest.MarkDecorator:
    """Every home that has some of it."""
    archives = [archive for archive, told in PROMISED.items() if told and any(told[each] for each in what)]
    return pytest.mark.parametrize("frozen", archives, ids=name_of, indirect=True)


@pytest.fixture
def deletion_begun(tmp_path: Path) -> Frozen:
    archive = next(each for each in ARCHIVES if each.name.startswith("deletion-begun"))
    return Frozen(archive, unpack(archive, tmp_path), expectation_of(archive))


def eraser_of(home: Home) -> Eraser:
    return replace(home.eraser, engine=in_process_engine(home.store.files))


def clean_and_purge(frozen: Frozen, now_ms: int) -> None:
    store = open_home(frozen.home, {}).store
    cleaner = Cleaner(store, in_process_engine(store.files))
    assert carry_out(cleaner, cleaner.plan(list(frozen.topics), now_ms=now_ms, requested=True)).failed == {}
    assert frozen.at(now_ms, "purge").code == 0


@having("erasures", "readers", "receipts")
def test_what_was_promised_is_found(frozen: Frozen) -> None:
    assert promised(frozen.home, frozen.now_ms) == frozen.expected["promised"]


@having("receipts")
def test_the_chain_goes_on_behind_the_receipts_that_are_there(frozen: Frozen) -> None:
    before = frozen.expected["promised"]["receipts"]

    assert frozen.at(frozen.later_ms, "purge").code == 0

    after = receipts(frozen.home)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert frozen.at(FAR_MS, "receipt", "verify").code == 0


@having("erasures")
def test_every_open_erasure_ends_verified_with_one_receipt(frozen: Frozen, tmp_path: Path) -> None:
    before = frozen.expected["promised"]
    states = {topic: known[0]["reached"][-1][0] for topic, known in before["erasures"].items()}
    assert sorted(states.values()) == sorted(states.keys()), "one of each state"
    delete_at_source(frozen, "requested", tmp_path)

    for number in range(3):
        clean_and_purge(frozen, FAR_MS + number * DAY_MS)
    end_ms = FAR_MS + 3 * DAY_MS
    found = eraser_of(open_home(frozen.home, {})).verify(now_ms=end_ms)

    assert dict(found.failed) == {}
    ended = {row.topic: row.erasure.reached for row in found.rows}
    assert {topic: states[-1].state for topic, states in ended.items()} == dict.fromkeys(states, "verified")
    for topic, known in before["erasures"].items():
        was = known[0]["reached"]
        assert [[each.state, each.at_ms] for each in ended[topic]][: len(was)] == was
    sealed = [topics for _, kind, topics, _ in receipts(frozen.home) if kind == "erasure"]
    assert sorted(sealed) == sorted([topic] for topic in states)
    assert frozen.at(end_ms, "receipt", "verify").code == 0


def delete_at_source(frozen: Frozen, topic: str, folder: Path) -> None:
    """The deletion that a request waits for arrives."""
    told = frozen.topics[topic]
    waiting = {hashed for _, hashed in frozen.expected["promised"]["erasures"][topic][0]["waiting"]}
    key = next(record[3] for record in told["logs"][0]["records"] if hash_of(frozen, record[3]) in waiting)
    row = {"at": [told["positions"][0]], "in": [0], "key": [key], "timestamp": [frozen.later_ms]}
    file = folder / "deletion.parquet"
    pq.write_table(pa.table(row | {"value": pa.nulls(1, pa.string())}), file)
    columns = ["--column", "offset=at", "--column", "partition=in", "--source-topic", told["source"]["topic"]]
    assert frozen.at(frozen.later_ms, "append", topic, "--file", str(file), *columns).code == 0


def hash_of(frozen: Frozen, key: str) -> str:
    """Of a key as it is told, in Latin-1."""
    return open_home(frozen.home, {}).eraser.hash_of(key.encode("latin-1")).partition(":")[2]


@having("readers")
def test_readers_read_on_and_whoever_missed_tombstones_is_told(frozen: Frozen) -> None:
    standing = frozen.expected["promised"]["readers"]
    for topic, name in dict.fromkeys((each["topic"], each["reader"]) for each in standing):
        positions = {each["partition"]: each["position"] for each in standing if each["reader"] == name}
        behind = [
            record[0]
            for partition, log in enumerate(frozen.topics[topic]["logs"])
            for record in log["records"]
            if record[0] >= (positions[partition] or 0)
        ]

        read = frozen.at(frozen.now_ms, "read", topic, "--as-reader", name)

        if name == "asleep":
            assert (read.code, read.out) == (1, "")
            assert "2 tombstones" in read.err
        else:
            assert [json.loads(line)["offset"] for line in read.out.splitlines()] == behind, name


@having("readers")
def test_tombstones_wait_until_the_time_of_a_reader_is_over_and_he_is_told(frozen: Frozen) -> None:
    def standing(now_ms: int) -> dict[tuple[str, str], Any]:
        rows = frozen.at(now_ms, "reader", "list", "waiting", "--json").json["readers"]
        return {(each["reader"], each["topic_partition"]): (each["holds_since_ms"], each["missed"]) for each in rows}

    before = standing(frozen.now_ms)

    clean_and_purge(frozen, frozen.later_ms)
    assert standing(frozen.later_ms) == before

    clean_and_purge(frozen, FAR_MS)
    after = standing(FAR_MS)
    assert {reader for (reader, _), (_, missed) in after.items() if missed} == {"search-index"}
    assert {holds for holds, _ in after.values()} == {None}


def test_a_deletion_that_was_begun_ends_with_a_receipt_of_every_segment(deletion_begun: Frozen) -> None:
    there = {path for path in deletion_begun.segments_on_disk if "/doomed/" in path}
    assert deletion_begun.at(deletion_begun.now_ms, "topic", "delete", "doomed", "--yes").code == 0

    newest = list(open_home(deletion_begun.home, {}).receipts.list("doomed"))[-1]

    assert newest.kind == "topic-delete"
    told = {Path(each["path"]).name for each in newest.content["files"] if each["path"].endswith(".parquet")}
    assert {Path(path).name for path in there} < told, "with the one that was deleted before"
    assert {path for path in deletion_begun.segments_on_disk if "/doomed/" in path} == set()

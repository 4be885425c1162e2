"""What keeps requests open after a search is found once for all of them, and it is what keeps each of them open."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.erasures.erasure import Erasure, ErasureBound
from keptlog.log.search import FileFindings, FileKind, KeyHits, SearchedFile
from keptlog.passes.erasures import kept_records
from keptlog.passes.erasures.left_files import LeftFiles
from tests.erasure.world import KEY, OTHER, VALUE, World

KEYS = ("aa" * 32, "bb" * 32, "cc" * 32)
PARTITIONS = 2


def deleted(world: World, *ids: str) -> None:
    """So many requests of which a verification alone is left."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    for each in ids:
        assert dict(world.ask(f"key of {each[1:]}".encode(), id=each).failed) == {}
    world.ask(KEY)
    assert world.to_deleted().erasure.state == "deleted"


def stray(world: World) -> Path:
    """A file in the topic's folder that nobody can read."""
    location = world.store.load_table("users").location().removeprefix("file://")
    path = Path(location, "data", "stray.parquet")
    path.write_bytes(b"PAR1 damaged")
    return path


def counted(monkeypatch: pytest.MonkeyPatch, *functions: str) -> Counter[str]:
    """How often ``kept_records`` has called these."""
    calls: Counter[str] = Counter()
    for name in functions:
        real = getattr(kept_records, name)

        def call(*given: Any, _name: str = name, _real: Any = real, **how: Any) -> Any:
            calls[_name] += 1
            return _real(*given, **how)

        monkeypatch.setattr(kept_records, name, call)
    return calls


def test_who_keeps_the_files_is_looked_for_once_however_many_requests_they_keep_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these looks lists the topic's folder, and may ask the store of locks."""
    deleted(world, "r2", "r3", "r4")
    path = stray(world)
    calls = counted(monkeypatch, "look_for_holders", "with_locks")
    rows = world.eraser.verify(now_ms=world.now_ms).rows
    assert [row.erasure.state for row in rows] == ["deleted"] * 4
    assert len({row.blocked for row in rows}) == 1
    (text,) = rows[0].blocked
    assert text.startswith(f"file://{path} was not looked through")
    assert "keep 1 staged file until" in text
    assert calls == {"look_for_holders": 1, "with_locks": 1}


def test_nobody_looks_who_keeps_files_where_none_keeps_a_request_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(world, "r2", "r3")
    calls = counted(monkeypatch, "look_for_holders")
    assert {row.erasure.state for row in world.eraser.verify(now_ms=world.now_ms).rows} == {"verified"}
    assert calls == {}


OFFSETS = st.integers(0, 6)
HITS = st.builds(
    lambda key, partition, records, lowest: KeyHits(
        bytes.fromhex(key), partition, records, lowest, None if lowest is None else lowest + 1, has_value=True
    ),
    st.sampled_from(KEYS),
    st.one_of(st.none(), st.integers(0, PARTITIONS)),
    st.integers(1, 3),
    st.one_of(st.none(), OFFSETS),
)
FINDINGS = st.builds(
    FileFindings,
    st.builds(
        SearchedFile,
        st.sampled_from(["data/a", "data/b", "data/c"]),
        st.just(1),
        st.just(value=False),
        st.booleans(),
        st.booleans(),
    ),
    st.just(FileKind.SEGMENT),
    st.lists(HITS, max_size=4).map(tuple),
    st.sampled_from([None, None, None, "it is damaged"]),
    st.sampled_from([False, False, True]),
)
BOUNDS = st.lists(
    st.builds(ErasureBound, st.integers(0, PARTITIONS - 1), OFFSETS, OFFSETS, st.sampled_from(["", *KEYS])), max_size=6
)


def by_definition(erasure: Erasure, findings: list[FileFindings]) -> list[str]:
    """What is told if each file is asked for each request, and each record for its bound."""
    told = []
    for each in findings:
        counting = []
        for hit in each.hits:
            partition, offset = hit.partition, hit.lowest_offset
            is_known = not each.file.is_stray and partition is not None and partition < PARTITIONS
            if hit.key_hash.hex() in erasure.key_hashes:
                end = erasure.end_offset_of(partition, hit.key_hash.hex()) if partition is not None else None
                if not is_known or offset is None or offset < (end or 0):
                    counting.append(hit)
        unread = each.problem or (each.is_gone and (each.file.is_needed or each.file.is_stray))
        if unread:
            told.append(f"{each.file.path} was not looked through")
        elif counting:
            records, keys = sum(hit.records for hit in counting), len({hit.key_hash for hit in counting})
            plural = "s" * (records != 1), "s" * (keys != 1)
            told.append(f"{each.file.path} (segment) has {records} record{plural[0]} of {keys} key{plural[1]}")
    more = len(told) - 5
    return told[:5] + ([f"and {more} file{'s' * (more != 1)} more"] if more > 0 else [])


class _NobodyKeeps(LeftFiles):
    _kept: Any = type("NoKept", (), {"of_file": staticmethod(lambda *_, **__: None)})
    _partitions: Any = range(PARTITIONS)


@given(st.lists(FINDINGS, max_size=8), st.lists(st.tuples(st.sets(st.sampled_from(KEYS)), BOUNDS), max_size=3))
def test_each_request_is_told_of_the_files_that_keep_it_open(
    findings: list[FileFindings], drawn: list[tuple[set[str], list[ErasureBound]]]
) -> None:
    left: Any = _NobodyKeeps(None, "users", 0, None, findings)  # type: ignore[arg-type]
    for keys, bounds in drawn:
        erasure = Erasure("r", "tombstone", 0, None, "", "f", tuple(sorted(keys)), tuple(bounds))
        told = [text.partition(": ")[0] for text in left.told(erasure)]
        assert told == by_definition(erasure, findings)

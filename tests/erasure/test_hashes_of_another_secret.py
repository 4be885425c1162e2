"""A hash that another secret has made is refused: it finds nothing, and "verified" would be said of a live key."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.storage.key_hash import KeyHasher
from tests.erasure.world import KEY, OTHER, VALUE, World

ELSEWHERE = KeyHasher(b"\xab" * 32)


def test_it_is_refused_by_both_fingerprints_and_nothing_is_asked_for(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    for hashes in ([ELSEWHERE.told(KEY)], [world.hasher.told(OTHER), ELSEWHERE.told(KEY)]):
        with pytest.raises(InvalidConfig) as refused:
            world.ask_by_hash(*map(str, hashes))
        said = f"of fingerprint {ELSEWHERE.fingerprint}, the one here has {world.hasher.fingerprint}"
        assert said in str(refused.value)
    assert (world.records(), world.register_files) == ([(0, KEY, VALUE)], [])


def test_where_no_secret_is_yet_that_is_told_and_none_is_made(world: World) -> None:
    world.create()
    with pytest.raises(InvalidConfig, match=f"of fingerprint {ELSEWHERE.fingerprint}, and there is none here yet"):
        world.ask_by_hash(str(ELSEWHERE.told(KEY)))
    assert not (world.home / "erasure.secret").exists()


def test_one_of_here_is_taken_in_either_case(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask_by_hash(world.eraser.hash_of(KEY).upper())
    assert world.erasure().key_hashes == (world.hasher.hash(KEY).hex(),)
    assert world.records()[-1] == (1, KEY, None)


@pytest.mark.parametrize("given", [ELSEWHERE.hash(KEY).hex(), KEY.decode(), "", ELSEWHERE.hash(KEY)])
def test_what_does_not_say_whose_it_is_is_refused_and_not_repeated(given: object) -> None:
    with pytest.raises(InvalidConfig, match="16 are lacking, put secret_fingerprint before it") as refused:
        ErasureRequest("r1", ("users",), key_hashes=(given,))  # type: ignore[arg-type]
    assert not given or str(given) not in str(refused.value)

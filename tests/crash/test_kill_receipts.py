"""``kill -9`` at each step of sealing, and many writers at once: every draft is sealed once, and the chain verifies."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from keptlog.home import open_home
from keptlog.table.chain.receipt_chain import ReceiptChain
from tests.crash.workload import Countdown
from tests.table.receipt_chains import chain_at, draft, ids, require_sound, stored

WRITERS = 6
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.table.receipt_chains", "tests.crash.workload"])


def seal(home: Path, names: list[str], caller: str, kill_at_call: int | None = None) -> int:
    """Seal drafts; killed at that function call from such files. Gives how many calls there were."""
    chain = chain_at(home)
    with Countdown(caller, kill_at_call) as countdown:
        chain.append([draft(name) for name in names])
    return countdown.calls


def killed(home: Path, names: list[str], caller: str, at_call: int) -> None:
    process = PROCESSES.Process(target=seal, args=(home, names, caller, at_call))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"the kill at call {at_call} did not happen"


def require_once(chain: ReceiptChain, names: list[str]) -> None:
    """Each of these was sealed once; nothing that somebody else could take for the chain is damaged."""
    assert sorted(ids(chain)) == sorted(draft(name).id for name in names)
    require_sound(chain)


@pytest.mark.parametrize(("caller", "every"), [("keptlog/table/chain/receipt_", 8), ("pyiceberg/", 250)])
def test_a_writer_that_is_killed_at_any_step_has_sealed_all_or_nothing_and_finds_it_again(
    tmp_path: Path, dice: Callable[[int], Random], caller: str, every: int
) -> None:
    home = tmp_path / "home"
    names = ["0", "1"]
    seal(home, names, caller)
    calls = seal(home, ["2", "3"], caller)
    names += ["2", "3"]
    chance = dice(7)
    for number, at_call in enumerate(range(1 + chance.randrange(every), calls, every)):
        new = [f"{number}-a", f"{number}-b"]
        killed(home, new, caller, at_call)
        chain = chain_at(home)
        sealed = set(ids(chain))
        require_sound(chain)
        assert {draft(name).id in sealed for name in new} in ({True}, {False}), "half of a batch was sealed"
        if number % 3 < 2:  # else the next one meets what two kills have left
            chain.append([draft(name) for name in new])
            names += new
        else:
            names += [name for name in new if draft(name).id in sealed]
        require_once(chain, names)


def test_a_writer_that_is_killed_while_it_makes_the_table_is_in_nobodys_way(tmp_path: Path) -> None:
    calls = seal(tmp_path / "first", ["0"], "keptlog/table/catalogs/embedded_catalog.py")
    assert calls > 5
    for at_call in range(1, calls, max(1, calls // 12)):
        home = tmp_path / f"home-{at_call}"
        killed(home, ["0"], "keptlog/table/catalogs/embedded_catalog.py", at_call)
        chain = chain_at(home)
        chain.append([draft("0")])
        require_once(chain, ["0"])


def seal_some(home: Path, writer: int) -> list[tuple[int, str]]:
    """Seal drafts of one's own and some that all seal, in several appends, with keys as a home makes them."""
    receipts = open_home(home).receipts.chain
    sealed = []
    for number in range(4):
        drafts = [draft(f"{writer}-{number}"), draft(f"all-{number}"), draft(f"{writer}-{number}-b")]
        sealed += [(each.sequence, each.id) for each in receipts.append(drafts)]
    return sealed


def test_six_writers_at_once_on_a_fresh_home_seal_each_draft_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with PROCESSES.Pool(WRITERS) as pool:
        told = [
            each for writer in pool.starmap(seal_some, [(home, number) for number in range(WRITERS)]) for each in writer
        ]
    names = [f"all-{number}" for number in range(4)]
    names += [f"{writer}-{number}{end}" for writer in range(WRITERS) for number in range(4) for end in ("", "-b")]
    opened = open_home(home)
    chain = opened.receipts.chain
    assert sorted(ids(chain)) == sorted(draft(name).id for name in names)
    assert {(each.sequence, each.id) for each in chain.receipts()} == set(told)
    found = opened.receipts.verify()
    assert found.is_sound, [each.text for each in found.findings]
    assert len(found.key_ids) == 1
    assert len(stored(chain)) == len(names)

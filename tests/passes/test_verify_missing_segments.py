"""``verify_log`` sees that the table lacks whole segments of the dirty section, wherever they lay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.home import Home
from keptlog.log.sections import GIVEN_UP
from keptlog.log.segment import Log
from keptlog.passes.check import CheckResult, Outcome
from keptlog.passes.repair import Repairer
from keptlog.passes.verify import verify_log
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.passes.test_in_legs import TOPIC, Killed, Scene
from tests.passes.test_verify import HOUR_MS, NOW_MS, append, cleaned_home, log_of
from tests.table.foreign import rows_at

LATER_MS = NOW_MS + 2 * HOUR_MS


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One log: offsets 1 to 3 clean, and dirty [4, 6], [7, 7], [8, 8]."""
    home = cleaned_home(tmp_path / "home")
    append(home, [("d", "1")], NOW_MS + 1)
    append(home, [("e", "1")], NOW_MS + 2)
    return home


def take(store: LogStore, topic: str, *segments: int) -> None:
    """A commit with keptlog's own state that takes segments out of the table."""
    gone = {store.logs(topic)[0].segments[each] for each in segments}
    table = store.load_table(topic)
    files = LiveFiles().of(table)
    FileChange({}, {}, [], [file for file in files[0] if file.segment in gone], files).land(table)


def set_cleaning_to(home: Home, text: str) -> None:
    """As an older keptlog's adoption has left it, or the clean that came next."""
    changes = home.store.load_table("users").transaction()
    changes.set_properties({"log.p0.cleaning-to": text}).commit_transaction()


def clean(home: Home, now_ms: int = LATER_MS) -> None:
    """What is old enough; the newest segment closes with time."""
    cleaner = replace(home.cleaner(lambda: None), engine=in_process_engine(home.store.files))  # type: ignore[arg-type,return-value]
    carry_out(cleaner, cleaner.plan(now_ms=now_ms, requested=True), f"clean-{now_ms}")


def of_dirty(home: Home, log: Log) -> CheckResult:
    (found,) = (each for each in verify_log(home.store, log, NOW_MS) if each.name == "G4")
    return found


def g4_of(scene: Scene) -> CheckResult:
    (found,) = (each for each in verify_log(scene.store, scene.store.logs(TOPIC)[0], scene.now_ms) if each.name == "G4")
    return found


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        pytest.param([2], "offset 7 is", id="between two"),
        pytest.param([1, 2], "offsets 4 to 7 are", id="the first ones"),
        pytest.param([3], "offset 8 is", id="the last one"),
        pytest.param([0, 1, 2, 3], "offsets 4 to 8 are", id="all of the log"),
    ],
)
def test_segments_that_the_table_no_longer_has_are_seen_and_their_offsets_named(
    home: Home, gone: list[int], told: str
) -> None:
    assert of_dirty(home, log_of(home)).outcome is Outcome.OK

    take(home.store, "users", *gone)

    found = of_dirty(home, log_of(home))
    assert found.outcome is Outcome.BROKEN
    assert found.description == f"{told} in no segment, and nothing has removed what was appended there"


def adopt(store: LogStore, topic: str) -> None:
    """Another program appends a row at the log's end, and that is adopted."""
    store.load_table(topic).append(rows_at(store.logs(topic)[0].log_end_offset))
    repairer = Repairer(store)
    plan = repairer.propose(topic, is_adoption=True, now_ms=NOW_MS)
    assert plan
    repairer.repair(plan, "adopt", now_ms=NOW_MS)


@pytest.mark.parametrize("checkpoint", ["4", "99"], ids=["a whole checkpoint", "a checkpoint behind the log end"])
def test_what_is_missing_after_an_adoption_and_a_clean_behind_which_nothing_was_is_lost(
    home: Home, checkpoint: str
) -> None:
    changes = home.store.load_table("users").transaction()
    changes.set_properties({"log.p0.first-dirty-offset": checkpoint}).commit_transaction()
    adopt(home.store, "users")
    assert log_of(home).was_adopted
    clean(home)
    clean(home, LATER_MS + HOUR_MS)
    for number, key in enumerate("fgh"):
        append(home, [(key, "1")], NOW_MS + 3 + number)

    take(home.store, "users", -2)

    found = of_dirty(home, log_of(home))
    assert found.outcome is Outcome.BROKEN
    assert found.description == "offset 11 is in no segment, and nothing has removed what was appended there"


def test_of_a_topic_that_was_adopted_it_is_said_that_nobody_looked_for_missing_segments(home: Home) -> None:
    set_cleaning_to(home, "0")
    take(home.store, "users", 2)

    home.store.load_table("users").transaction().set_properties({"log.undone": "[]"}).commit_transaction()
    found = of_dirty(home, log_of(home))
    assert found.outcome is Outcome.OK
    assert found.description.endswith(
        "Nobody looked for missing segments, for the topic was adopted, and may have gaps anywhere."
    )


@pytest.mark.parametrize("cleaning_to", ["0", ""], ids=["before the next clean", "after it"])
def test_of_what_an_older_keptlog_may_have_given_up_in_an_adoption_nobody_says_that_it_is_lost(
    home: Home, cleaning_to: str
) -> None:
    """It noted no adoption in the topic. What it left there a clean in legs leaves as well."""
    set_cleaning_to(home, cleaning_to)
    assert of_dirty(home, log_of(home)).outcome is Outcome.OK

    take(home.store, "users", 3)

    found = of_dirty(home, log_of(home))
    assert found.outcome is Outcome.NOT_LOOKED_AT
    told = "offset 8 is in no segment: nobody can tell whether an adoption by an older keptlog gave that up"
    assert told in found.description


def test_a_segment_that_is_lost_after_a_clean_in_legs_is_told_as_lost(tmp_path: Path) -> None:
    """No older keptlog can have given it up: the clean has ended, and nothing was missing behind it."""
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1")).append(("a", "2")).append(("a", "3")).clean()
    assert scene.commits > 1
    scene.append(("x", "1")).append(("y", "1")).append(("z", "1"))
    take(scene.store, TOPIC, -2)
    found = g4_of(scene)
    assert found.outcome is Outcome.BROKEN
    assert found.description == "offset 5 is in no segment, and nothing has removed what was appended there"


@pytest.mark.parametrize("cleaning_to", ["0", ""], ids=["before the next clean", "after it"])
def test_what_is_missing_after_a_clean_behind_which_nothing_was_is_lost_and_not_given_up(
    home: Home, cleaning_to: str
) -> None:
    set_cleaning_to(home, cleaning_to)

    clean(home)

    append(home, [("f", "1")], NOW_MS + 3)
    append(home, [("g", "1")], NOW_MS + 4)
    take(home.store, "users", -2)
    found = of_dirty(home, log_of(home))
    assert found.outcome is Outcome.BROKEN
    assert found.description == "offset 9 is in no segment, and nothing has removed what was appended there"


def clean_below_a_young_segment_that_is_lost(home: Home) -> None:
    """What is missing is younger than the minimum lag, so no clean has passed it."""
    young_ms = NOW_MS + HOUR_MS // 2
    for number, key in enumerate("fgh"):
        append(home, [(key, "1")], young_ms + number)
    take(home.store, "users", -2)
    home.store.alter_topic("users", {"min.compaction.lag.ms": str(LATER_MS - young_ms + 1)})
    clean(home)
    assert log_of(home).checkpoint == 9


def test_what_an_older_keptlog_may_have_given_up_stays_unknown_until_a_clean_has_passed_it(home: Home) -> None:
    set_cleaning_to(home, "0")
    clean_below_a_young_segment_that_is_lost(home)
    assert of_dirty(home, log_of(home)).outcome is Outcome.NOT_LOOKED_AT
    home.store.alter_topic("users", {}, ["min.compaction.lag.ms"])
    clean(home, LATER_MS + HOUR_MS)
    assert of_dirty(home, log_of(home)).outcome is Outcome.OK
    append(home, [("i", "1")], NOW_MS + 5)
    append(home, [("j", "1")], NOW_MS + 6)
    take(home.store, "users", -2)
    assert of_dirty(home, log_of(home)).outcome is Outcome.BROKEN


@pytest.mark.parametrize("max_bytes", [1, 10**9], ids=["in legs", "in one commit"])
@pytest.mark.parametrize("is_adopted", [True, False], ids=["adopted and cleaned since", "never adopted"])
def test_a_clean_takes_no_segment_that_was_lost_before_it_for_given_up(
    tmp_path: Path, *, is_adopted: bool, max_bytes: int
) -> None:
    """A clean in legs notes how far it goes, as an adoption notes how far the log was clean."""
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1")).append(("a", "2"))
    if is_adopted:
        adopt(scene.store, TOPIC)
    scene.clean()
    for number in range(3):
        scene.append(("x", str(number)))
    scene.store.alter_topic(TOPIC, {"min.compaction.lag.ms": str(4 * HOUR_MS + 1)})
    for key in "efgh":
        scene.append((key, "1"))
    take(scene.store, TOPIC, -2)
    lost = g4_of(scene)
    assert lost.outcome is Outcome.BROKEN
    cleans, scene.commit_max_bytes = scene.commits, max_bytes

    scene.clean()

    assert scene.commits > cleans + (max_bytes == 1)
    found = g4_of(scene)
    assert (found.outcome, found.description) == (lost.outcome, lost.description)


def test_an_adoption_in_the_middle_of_a_clean_in_legs_may_have_given_up_what_is_missing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1")).append(("a", "2")).append(("a", "3"))
    scene.between = {2: scene.kill}
    with pytest.raises(Killed):
        scene.clean()
    assert scene.store.logs(TOPIC)[0].cleaning_to == 4

    adopt(scene.store, TOPIC)

    scene.store.alter_topic(TOPIC, {"min.compaction.lag.ms": str(4 * HOUR_MS + 1)})
    for key in "efgh":
        scene.append((key, "1"))
    take(scene.store, TOPIC, -2)
    scene.clean()
    assert g4_of(scene).outcome is Outcome.OK
    assert "Nobody looked for missing segments, for the topic was adopted" in g4_of(scene).description


def test_a_topic_that_an_older_keptlog_adopted_behind_its_log_end_may_have_gaps_until_a_clean_has_passed_them(
    home: Home,
) -> None:
    """It noted the adoption, and not how far the log was clean where its checkpoint lay behind the end."""
    changes = home.store.load_table("users").transaction()
    changes.set_properties({"log.undone": "[]", "log.p0.first-dirty-offset": str(GIVEN_UP)}).commit_transaction()
    take(home.store, "users", 2)
    assert of_dirty(home, log_of(home)).outcome is Outcome.OK
    clean_below_a_young_segment_that_is_lost(home)
    assert of_dirty(home, log_of(home)).outcome is Outcome.OK
    home.store.alter_topic("users", {}, ["min.compaction.lag.ms"])
    clean(home, LATER_MS + HOUR_MS)
    for number, key in enumerate("ijk"):
        append(home, [(key, "1")], NOW_MS + 5 + number)
    take(home.store, "users", -2)
    assert of_dirty(home, log_of(home)).outcome is Outcome.BROKEN


def test_a_log_that_has_lost_its_head_to_retention_lacks_nothing(home: Home) -> None:
    log = log_of(home)
    for kept in range(1, 4):
        start = log.segments[kept].base_offset
        assert of_dirty(home, replace(log, segments=log.segments[kept:], log_start_offset=start)).passed
    assert of_dirty(home, replace(log, segments=(), log_start_offset=9)).passed

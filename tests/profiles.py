"""How many examples Hypothesis makes. A test names its own number; the profile of a run takes a share of it.

    keptlog    100 %    make test
    quick       20 %    make quick
    soak       200 %    make soak, with dice of its own each round

A profile's ``max_examples`` is that share, since a test that names no number takes Hypothesis' own 100.
"""

from __future__ import annotations

from hypothesis import settings

_WHOLE = 100


def register() -> None:
    """Make the profiles known; ``pytest --hypothesis-profile`` chooses another than ``keptlog``."""
    # How long an example takes says something about the machine, nothing about the code.
    settings.register_profile("keptlog", deadline=None, max_examples=_WHOLE)
    settings.register_profile("quick", settings.get_profile("keptlog"), max_examples=20)
    settings.register_profile("soak", settings.get_profile("keptlog"), max_examples=200, print_blob=True)
    settings.load_profile("keptlog")


def examples(number: int) -> int:
    """How many examples a test makes in this run that makes ``number`` of them in ``make test``."""
    share = settings.get_profile(settings.get_current_profile_name()).max_examples
    return max(1, number * share // _WHOLE)


def is_soak() -> bool:
    """Whether this run is to meet histories that none has met before."""
    return settings.get_current_profile_name() == "soak"

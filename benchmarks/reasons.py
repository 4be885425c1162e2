"""What bounds a goal that is not met, and what was tried for it: shown below the goals of its case.

Results are measured, and this is written by people. So it stands apart from them, by case and goal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

REASONS: Mapping[tuple[str, str], str] = {}
"""By the name of a case and the text of a goal."""


def reasons(case: str, goals: Iterable[Mapping[str, object]]) -> Iterable[str]:
    """A line for each goal of a case that is not met, as far as there is something to say."""
    for goal in goals:
        text = str(goal["text"])
        if not goal["met"] and (case, text) in REASONS:
            yield f"- **{text}**: {REASONS[case, text]}"

"""Java's properties, as far as Kafka's files use them: ``name=value`` lines and ``#`` comments."""

from __future__ import annotations

from keptlog.errors import InvalidConfig


def parse_properties(text: str, where: str) -> dict[str, str]:
    """Settings by name, as they stand in a file; ``where`` names it for whoever has to look.

    Raises:
        InvalidConfig: a line is neither. It is not shown: what lost its name may be a password.
    """
    settings: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "!")):
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise InvalidConfig(f"{where} line {number} is not name=value")
        settings[name.strip()] = value.strip()
    return settings

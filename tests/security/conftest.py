"""The command, in this process, with a home of its own."""

from tests.cli.conftest import home, keptlog

__all__ = ["home", "keptlog"]

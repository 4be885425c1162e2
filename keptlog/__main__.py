"""``python -m keptlog`` is the ``keptlog`` command."""

from keptlog.cli import run

if __name__ == "__main__":
    run()

"""``python -m keptlog`` is the ``keptlog`` command."""

from keptlog.cli import main

if __name__ == "__main__":
    main()

"""Makes the site, or says why not: ``python -m scripts.site [ROOT] [OUT]``, or by itself ``build/docs`` from here."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import build_main

_HERE = Path(__file__).parent


def make(root: Path, out: Path) -> int:
    """Sphinx's exit code; whatever it warns of is wrong."""
    strict = ("-W", "--keep-going", "-q", "-n")
    return build_main([*strict, "-b", "html", "-c", str(_HERE), "-d", f"{out}.read", str(root), str(out)])


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:]]
    root = given[0] if given else _HERE.parents[1]
    out = given[1] if given[1:] else root / "build" / "docs"
    if code := make(root, out):
        sys.exit(code)
    sys.stdout.write(f"{out / 'index.html'}\n")

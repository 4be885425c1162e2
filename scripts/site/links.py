"""What becomes of links that lead out of the pages: to code, to a test, to a folder.

A checkout has all of these beside the pages; a site does not. A file goes along with the site, which is MyST's own way.
A folder becomes the page that tells about it, if it has one, and else its name without a link. A link to what is not
there is left as it is, and ends the build.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

TELLING = ("index.md", "README.md")
"""The page of a folder, the first that is there."""


def mend_folder_links(app: Sphinx, document: nodes.document) -> None:
    """Give each link to a folder its page, or take the link away."""
    root = Path(app.srcdir)
    for link in list(document.findall(pending_xref)):
        if link.get("reftype") != "myst" or not link.get("reftarget"):
            continue
        page = PurePosixPath(link.get("refdoc", app.env.current_document.docname))
        folder = (root / page.parent / str(link["reftarget"]).partition("#")[0]).resolve()
        if not folder.is_dir():
            continue
        telling = next((folder / name for name in TELLING if (folder / name).is_file()), None)
        docname = telling.relative_to(root).with_suffix("").as_posix() if telling else ""
        if docname in app.env.found_docs:
            link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", docname, None
        else:
            link.replace_self(nodes.inline("", "", *link.children))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.connect("doctree-read", mend_folder_links)
    return {"parallel_read_safe": True}

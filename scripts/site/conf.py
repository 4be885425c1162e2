"""How Sphinx makes the site: ``make docs`` reads this file, and writes ``build/docs``.

The pages are the repository's own Markdown, where it lies: a link that works in a checkout works on the site. So Sphinx
starts at the root of the repository, and the first page is ``docs/index.md``. Anything doubtful ends the build: a link
that leads nowhere, a page in no contents, a picture that is missing. Nothing is fetched, then or by a reader.
"""

from importlib import metadata

project = "keptlog"
release = metadata.version("keptlog")
project_copyright = "Apache-2.0"

extensions = ["myst_parser", "scripts.site.links", "scripts.site.reference"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTEXT.md", "CHANGELOG.md", "benchmarks/*.md", "docs/**.md"]
exclude_patterns = [".*", "build", "keptlog", "orchestration", "assets", "resources", "tests", "examples"]

nitpicky = True
myst_heading_anchors = 3
myst_linkify_fuzzy_links = False
suppress_warnings = ["myst.header"]  # a page may begin with a level of its own
highlight_language = "none"
language = "en"

html_theme = "furo"
html_title = "keptlog"
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["first_page"]
templates_path: list[str] = []

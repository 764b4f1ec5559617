"""How Sphinx makes the site from these pages: `scripts/site` builds it."""

import os
import re
import sys
from datetime import date
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.util import logging

import textcat

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "https://github.com/textcat-margin/textcat-margin/blob/main"
LONGEST_DESCRIPTION = 160  # characters: search engines show no more

project = "textcat"
author = "The textcat developers"
project_copyright = f"{date.today().year}, {author}"
version = release = textcat.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_static"]
nitpicky = False
default_role = "code"  # docstrings write code between single backquotes, as Markdown does
suppress_warnings = ["myst.strikethrough"]

# --- Markdown and notebooks ------------------------------------------------------------------------------------------

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
# The notebooks call the command `textcat` of this environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ |= {"TTY_COMPATIBLE": "0", "COLUMNS": "100", "PYTHONUTF8": "1"}  # commands draw no progress, as in a pipe
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

# --- docstrings ------------------------------------------------------------------------------------------------------

numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types
autodoc_default_options = {"members": True, "show-inheritance": True}

# --- HTML ------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"textcat {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


def _describe(app, pagename, templatename, context, doctree) -> None:
    """Give a page its description: the beginning of its first paragraph that is no note of who wrote it when."""
    if doctree is None or pagename in ("genindex", "search"):
        texts = [f"{context.get('title') or 'Search'} of the documentation of textcat."]
    else:
        texts = [" ".join(node.astext().split()) for node in doctree.findall(nodes.paragraph) if _is_prose(node)]
    if not texts:
        logging.getLogger(__name__).warning("This page has no paragraph that could describe it.", location=pagename)
        return
    text = texts[0]
    if len(text) > LONGEST_DESCRIPTION:
        text = re.sub(r"[\s,;:]*\S*$", "", text[:LONGEST_DESCRIPTION]) + "…"
    escaped = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    context["metatags"] = context.get("metatags", "") + f'\n<meta name="description" content="{escaped}">'


def _is_prose(node: nodes.Node) -> bool:
    return not node.astext().startswith("Written by") and isinstance(node.parent, (nodes.section, nodes.document))


def _skip(app, what, name, found, skip, options) -> bool | None:
    """Skip what scikit-learn adds to every estimator for the routing of metadata."""
    return True if re.fullmatch(r"(set_\w+_request|get_metadata_routing)", name) else None


class _CsvLexer(TextLexer):
    aliases: ClassVar = ["csv"]


# What the theme leaves to be said: which part is which, and that what scrolls can be reached by keys.
_REPAIRS = (
    (
        r"<aside class=\"(sidebar|toc)-drawer",
        lambda found: f'<aside aria-label="{_LABELS[found[1]]}" class="{found[1]}-drawer',
    ),
    (r"<pre>", '<pre tabindex="0">'),
    (r'<div class="(table-wrapper|output)', r'<div tabindex="0" class="\1'),
    (r'<th class="(head[^"]*)">(?:<p></p>)?</th>', r'<td class="\1"></td>'),
    (r"<th></th>", "<td></td>"),
    (r'(<div id="search-results")', r"<h1>Search</h1>\n\1"),
)
_LABELS = {"sidebar": "All pages", "toc": "On this page"}


def _repair(app, exception) -> None:
    """Repair the pages as they are on disk, once: the theme's parts among them are in no document tree."""
    for path in Path(app.outdir).rglob("*.html") if exception is None else ():
        text = path.read_text(encoding="utf-8")
        repaired = text
        for pattern, replacement in _REPAIRS if "tabindex" not in text.partition("<article")[2] else ():
            repaired = re.sub(pattern, replacement, repaired)
        if repaired != text:
            path.write_text(repaired, encoding="utf-8")


def _complete(app, docname: str, source: list[str]) -> None:
    """Name each page once in its folder's contents: `*` stands for those not named, by the alphabet."""
    folder = Path(app.srcdir, docname).parent
    lines = source[0].splitlines()
    if "*" not in lines:
        return
    named = list(dict.fromkeys(line for line in lines if (folder / f"{line}.md").is_file()))
    rest = sorted(path.stem for path in folder.glob("*.md") if path.stem not in {*named, "index"})
    first = [line for n, line in enumerate(lines) if line not in named or line not in lines[:n]]
    source[0] = "\n".join("\n".join(rest) if line == "*" else line for line in first) + "\n"


_PAGES = {
    path.name: path.stem.lower() for path in ROOT.glob("*.md")
}  # files beside docs: where they are pages of the site


def _include(app, docname: str, source: list[str]) -> None:
    """Read a file beside docs in place of its ``include``, and lead links among such files to their pages."""
    up = "../" * (docname.count("/"))
    included = re.match(r"```\{include\} (?:\.\./)+([A-Z]+\.md)\n.*?```\n(.*)", source[0], re.DOTALL)
    if included:
        app.env.note_dependency(str(ROOT / included[1]))
        text = (ROOT / included[1]).read_text(encoding="utf-8").replace("](docs/", f"]({up}")
        source[0] = text + included[2]

    def lead(link: re.Match) -> str:
        page = f"project/{_PAGES[link[1]]}.md" if link[1] in _PAGES else ""
        if page and Path(app.srcdir, page).is_file():
            return f"]({up}{page}"
        return f"]({SOURCES}/{link[1]}" if (ROOT / link[1]).is_file() else link[0]

    source[0] = re.sub(rf"\]\((?:\.\./{up})?([A-Z]+(?:\.\w+)?)(?=[#)])", lead, source[0])


def setup(app) -> None:
    """Connect what is above."""
    app.connect("source-read", _include)
    app.connect("source-read", _complete)
    app.connect("autodoc-skip-member", _skip)
    app.connect("html-page-context", _describe)
    app.connect("build-finished", _repair)
    app.add_lexer("csv", _CsvLexer)  # Pygments has none

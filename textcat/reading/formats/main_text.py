"""Find the main text of a page of HTML: without navigation, notices, comments and lists of other pages."""

import logging
from functools import cache
from importlib.util import find_spec
from typing import Any

from textcat.errors import TextcatError, install_hint

_LONGEST = 2 << 20  # characters; the time of the extractor is not proportional to the length of every page


def check_extractor() -> None:
    """Raise a TextcatError if the package that finds main texts is not installed."""
    if find_spec("trafilatura") is None:
        raise TextcatError(f"--main-text needs a package that is not installed: run `{install_hint('web')}`.")


def main_text(text: str, with_author: bool = False) -> tuple[str, str]:
    """Return the main text of a page and, if it is asked for, the author; "" where the page has none.

    Of a page of more than 2 million characters, nothing is returned.
    """
    if len(text) > _LONGEST:
        return "", ""
    extractor = _extractor()
    try:
        found = extractor.bare_extraction(
            text, fast=True, include_comments=False, include_formatting=False, with_metadata=with_author
        )
    except Exception:  # the library raises many kinds for odd pages, whose visible text is taken then
        return "", ""
    return ((found.text or "").strip(), (found.author or "").strip()) if found is not None else ("", "")


@cache
def _extractor() -> Any:
    check_extractor()
    import trafilatura

    for name in ("trafilatura", "htmldate"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they warn of pages without text
    return trafilatura

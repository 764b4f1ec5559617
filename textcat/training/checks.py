"""Warn of documents and topics that can be trained on, but are probably not what was meant."""

import re
import warnings
from collections.abc import Collection, Sequence

from textcat.reading.document import Document
from textcat.recipe import Recipe

# Languages written without spaces, by their scripts; where there is kana, Chinese characters are Japanese.
_UNSPACED = {
    "ja": re.compile("[\u3040-\u30ff\u3400-\u9fff]{5,}"),
    "th": re.compile("[\u0e00-\u0e7f]{5,}"),
    "zh": re.compile("[\u3400-\u9fff]{5,}"),
}
_KANA = re.compile("[\u3040-\u30ff]")
_NAME_IT = "Name their language, as with --lang {code} (in a recipe: lang = {code!r} in [tokens])"
SCRIPT_SAMPLE = 500  # documents by which the script of a corpus is found
_SEPARATORS = (";", "|", ",", "/")
_JOINED_SHARE = 0.2  # of the topics, from which on a sign in them is taken for a separator


def warn_if_unsegmented(documents: Sequence[Document], recipe: Recipe, remedy: str = _NAME_IT) -> None:
    """Warn if documents are written without spaces between words, and the recipe's language would not split them."""
    if (lang := recipe.tokens.get("lang", "en")) in _UNSPACED:
        return
    texts = [text for document in documents for text in document.zones.values()]
    n_characters = sum(len(part) for text in texts for part in text.split())
    runs = {code: [run for text in texts for run in script.findall(text)] for code, script in _UNSPACED.items()}
    if any(map(_KANA.search, runs["ja"])):
        runs["zh"] = []
    share, code = max((sum(map(len, runs[code])) / max(n_characters, 1), code) for code in ("zh", "th", "ja"))
    if share > 0.2:
        warnings.warn(
            f"{share:.0%} of the characters of the documents stand in runs without spaces, as Chinese, Japanese and "
            f"Thai are written; with the language {lang!r} each run is one term. {remedy.format(code=code)}.",
            stacklevel=3,
        )


def warn_of_joined_topics(topics: Collection[str]) -> None:
    """Warn if many topics are probably lists of topics in one string, such as ``"corn;wheat"``.

    They are if a fifth of them has the same sign in it, and they have no more different parts than they are: the same
    parts occur in several of them.
    """
    for separator in _SEPARATORS:
        joined = [topic for topic in topics if separator in topic.strip(separator)]
        parts = {part.strip() for topic in joined for part in topic.split(separator)}
        if len(joined) > 1 and len(joined) >= _JOINED_SHARE * len(topics) and len(parts) <= len(joined):
            warnings.warn(
                f"{len(joined):,} of {len(topics):,} topics have a {separator!r}, as {min(joined)!r} has: if it stands "
                f"between topics, give --topics-separator {separator!r} (in Python topics_separator={separator!r}).",
                UserWarning,
                stacklevel=2,
            )
            return

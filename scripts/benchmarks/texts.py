"""Documents → the forms in which the peers take them."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.lang.en.stop_words import STOP_WORDS

from textcat.corpus.documents import Document
from textcat.features.tokens import Tokens


def plain(documents: Sequence[Document]) -> list[str]:
    """Join title and body."""
    return [f"{document.zones.get('title', '')}\n{document.zones.get('body', '')}" for document in documents]


def token_lines(texts: Sequence[str], *, terms_only: bool) -> list[str]:
    """Write each text as its spaCy tokens in lower case with spaces between them: all of them, or only our terms."""
    tokens = Tokens()
    return [
        " ".join(token for token in map(str.lower, tokens.tokenize(text)) if _kept(token, terms_only)) for text in texts
    ]


def _kept(token: str, terms_only: bool) -> bool:
    return token.isalpha() and token not in STOP_WORDS if terms_only else not token.isspace()

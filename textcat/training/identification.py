"""Name the language that most documents of a corpus are written in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from textcat.base.errors import TextcatError, install_hint
from textcat.base.normal_forms import normalised
from textcat.features.language import UnknownLanguageError, open_language
from textcat.features.scripts import NEUTRAL_LANGUAGE, UNSPACED_LANGUAGES
from textcat.reading.document import Document

LANGUAGE_SAMPLE = 500  # number of documents sampled to identify the language of a corpus
_SPACYS = {"nn": "nb", "no": "nb"}  # codes for which spaCy has another code
_MOST_CHARACTERS = 2_000  # number of characters read of each document


class CorpusLanguage(NamedTuple):
    """The language of a corpus, and how many of the sampled documents are written in it.

    `identified` is the code that was identified, such as "no"; `lang` is the code to use in recipes, such as "nb".
    """

    lang: str  # a code that `Tokens` accepts; "xx" if spaCy has no tokenizer for the language
    identified: str  # the code of the language
    n_documents: int  # number of sampled documents in this language
    n_sampled: int


def identify_language(documents: Sequence[Document]) -> CorpusLanguage:
    """Return the language that most documents are written in; ties go to the first code in alphabetical order.

    Raise TextcatError if py3langid is not installed or no document has a letter.
    """
    languages = Counter(filter(None, identify_languages(document.zones for document in documents)))
    if not languages:
        raise TextcatError("No training document has a letter to tell the language by: name it, as in --lang de.")
    identified, n_documents = min(languages.items(), key=lambda item: (-item[1], item[0]))
    return CorpusLanguage(_known_to_spacy(identified), identified, n_documents, languages.total())


def identify_languages(documents: Iterable[dict[str, str]]) -> list[str]:
    """Return the code of each document's language, such as "de"; "" for a document without a letter.

    A document is given as its texts by zone, as in ``Document.zones``.

    Raise TextcatError if py3langid is not installed.
    """
    try:
        import py3langid
    except ImportError:
        raise TextcatError(
            f"The language of documents is named by py3langid, which is not installed: {install_hint('lang')}, or name "
            "the language, as in --lang de."
        ) from None
    texts = (normalised(" ".join(zones.values()))[:_MOST_CHARACTERS] for zones in documents)
    return [py3langid.classify(text)[0] if any(map(str.isalpha, text)) else "" for text in texts]


def model_language(identified: str, languages: Container[str]) -> str:
    """Return which of the codes `languages` stands for an identified language; "" if none does.

    The codes may be spaCy's, which differ from the identified code for Norwegian ("nb" for "no" and "nn").
    """
    if identified in languages:
        return identified
    other = _SPACYS.get(identified, "")
    return other if other in languages else ""


def _known_to_spacy(identified: str) -> str:
    lang = _SPACYS.get(identified, identified)
    if lang in UNSPACED_LANGUAGES:
        return lang
    try:
        open_language(lang)
    except UnknownLanguageError:
        return NEUTRAL_LANGUAGE
    return lang

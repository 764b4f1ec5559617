"""The language of a corpus is that of most documents, and is one that texts can be tokenized by."""

import sys

import pytest

from textcat.base.errors import TextcatError
from textcat.features.tokens import Tokens
from textcat.reading.document import Document
from textcat.training.identification import CorpusLanguage, identify_language

TEXTS = {
    "en": "The bank raised the rate of interest again, and prices of houses fell in the whole country.",
    "de": "Die Bank hat den Zinssatz wieder erhöht, und die Preise der Häuser sind im ganzen Land gefallen.",
    "fi": "Pankki nosti jälleen korkoa, ja asuntojen hinnat laskivat koko maassa.",
    "nb": "Banken satte opp renten igjen, og prisene på hus falt i hele landet i fjor, ifølge myndighetene.",
    "th": "ธนาคารขึ้นอัตราดอกเบี้ยอีกครั้ง และราคาบ้านลดลงทั่วประเทศ",
    "zh": "银行再次提高了利率，全国的房价都下降了。",
}


def _documents(*texts):
    return [Document(str(i), {"title": "", "body": text}) for i, text in enumerate(texts)]


@pytest.mark.parametrize("lang", TEXTS)
def test_a_language_is_named_by_a_code_that_tokens_take(lang):
    found = identify_language(_documents(TEXTS[lang]))
    assert (found.lang, found.n_documents, found.n_sampled) == (lang, 1, 1)
    assert Tokens(found.lang).tokenize(TEXTS[lang])


def test_most_documents_decide_and_those_without_letters_are_left_out():
    found = identify_language(_documents(TEXTS["de"], TEXTS["en"], TEXTS["de"], "", "12 %"))
    assert found == CorpusLanguage("de", "de", 2, 3)
    assert identify_language(_documents(TEXTS["fi"], TEXTS["de"])).lang == "de"


def test_a_language_that_spacy_does_not_have_gets_the_rules_of_none():
    text = "Ny olombelona rehetra dia teraka afaka sy mitovy amin'ny fahamarinana sy ny fitsipika."
    found = identify_language(_documents(text))
    assert (found.lang, found.identified) == ("xx", "mg")


def test_what_cannot_be_told_is_refused(monkeypatch):
    with pytest.raises(TextcatError, match=r"No training document has a letter.*--lang de"):
        identify_language(_documents("", "12"))
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(TextcatError, match=r"py3langid, which is not installed: pip install .*\[lang\]"):
        identify_language(_documents(TEXTS["de"]))

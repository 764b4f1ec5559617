"""Slow twins of textcat.features: plain Python over `nlp(text)`, to be checked by eye."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import spacy

_BLANK = {}


def nlp_of(lang):
    if lang not in _BLANK:
        _BLANK[lang] = spacy.blank(lang)
    return _BLANK[lang]


def tokens(text, lang="en"):
    return [token.text for token in nlp_of(lang)(text)]


def terms(text, lang="en", lowercase=True, alphabetic=True, remove_stop_words=True):
    kept = []
    for token in nlp_of(lang)(text):
        if token.is_space or (alphabetic and not token.is_alpha) or (remove_stop_words and token.is_stop):
            continue
        kept.append(token.lower_ if lowercase else token.text)
    return kept


def term_frequencies(document, zones=None, apart=False, bigrams=False, sublinear_tf=False, **settings):
    texts = {"body": document} if isinstance(document, str) else document.zones
    tf = Counter()
    for zone, text in texts.items():
        if zones is not None and zone not in zones:
            continue
        words = terms(text, **settings)
        names = words + ([f"{a} {b}" for a, b in pairwise(words)] if bigrams else [])
        for name, n in Counter(names).items():
            counted = 1 + math.log(n) if sublinear_tf else n
            tf[f"{zone}:{name}" if apart else name] += (1 if zones is None else zones[zone]) * counted
    return tf


def tf_idf(train, documents, sublinear_tf=False, min_df=1, max_features=None, **settings):
    """Give the names of the columns and a dense float32 matrix."""
    m = len(train)
    settings["sublinear_tf"] = sublinear_tf
    df = Counter(name for document in train for name in term_frequencies(document, **settings))
    names = sorted(name for name in df if df[name] >= min_df)
    if max_features is not None:
        names = sorted(sorted(names, key=lambda name: (-df[name], name))[:max_features])
    X = np.zeros((len(documents), len(names)), np.float32)
    for i, document in enumerate(documents):
        tf = term_frequencies(document, **settings)
        row = []
        for name in names:
            row.append(float(tf[name]) * math.log(m / df[name]))
        squares = 0.0
        for x in row:
            squares += x * x
        if squares > 0:
            X[i] = [x / math.sqrt(squares) for x in row]
    return names, X

"""Slow twins of textcat.features: plain Python over `nlp(text)`, to be checked by eye."""

import math
import re
import unicodedata
from collections import Counter

import numpy as np
import spacy
from spacy.tokenizer import Tokenizer

from textcat.features.scripts import HAN_AND_KANA, UNSPACED_RANGES

_BLANK = {}


def nlp_of(lang):
    if lang not in _BLANK:
        _BLANK[lang] = spacy.blank(lang)
    return _BLANK[lang]


def is_unspaced(string):
    return all(any(first <= ord(c) <= last for first, last in UNSPACED_RANGES) for c in string)


def is_han_or_kana(string):
    return any(first <= ord(string) <= last for first, last in HAN_AND_KANA)


def is_of_run(word):
    return is_unspaced(word[:1]) or 0x40000 <= ord(word[0]) < 0x60000


def crossing(text, lang="en", segmenter="ngrams", lowercase=True):
    """The n-grams of a text with a stand-in for a character of no run; none if it has too few Han or kana."""
    counting = [c for c in text if is_han_or_kana(c)]
    n = len("".join(text.split()))
    splits = type(nlp_of(words_lang(lang, segmenter)).tokenizer) is Tokenizer
    if segmenter != "ngrams" or not splits or not counting or 4 * len(counting) < n:
        return []
    read = "".join(c if is_unspaced(c) else _stand_in(c, lowercase) for c in text)
    grams = [read[i : i + n] for i in range(len(read)) for n in (1, 2, 3) if i + n <= len(read)]
    return [gram for gram in grams if not is_unspaced(gram)]


def _stand_in(character, lowercase):
    if character.isspace():
        character = " "
    elif lowercase and len(character.lower()) == 1:
        character = character.lower()
    if "\ud800" <= character <= "\udfff" or ord(character) >= 0x20000:
        character = "\ufffd"
    return chr(0x40000 + ord(character))


def parts(text, lang, segmenter):
    """Divide a text into runs of scripts without spaces and the texts between them; a run takes one space behind it."""
    if segmenter == "spacy" or type(nlp_of(words_lang(lang, segmenter)).tokenizer) is not Tokenizer:
        return [(False, text)] if text else []
    ends = [i for i in range(1, len(text)) if is_unspaced(text[i - 1]) != is_unspaced(text[i])]
    pieces = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    divided = []
    for piece in pieces:
        if divided and divided[-1][0]:
            piece = piece.removeprefix(" ")
        if piece:
            divided.append((is_unspaced(piece), piece))
    return divided


def words_lang(lang, segmenter):
    return "xx" if segmenter != "spacy" and lang in ("zh", "ja", "th", "lo", "km", "my") else lang


UNSEEN = "\xad\u034f\u061c\u0640\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
SHAPED = "\u017f\u1e9b\u2e80-\u2fd5\ufb00-\ufdff\ufe70-\ufefc０-９Ａ-Ｚａ-ｚ\uff66-\uffdc"


def normalised(text):
    text = re.sub("\xad[ \t]*(\r\n|\r|\n)[ \t]*", "", text)
    text = re.sub("([^\\W\\d_]|[\u0300-\u036f])[¬⸗][ \t]*(?:\r\n|\r|\n)[ \t]*(?=[^\\W\\d_])", r"\1", text)
    text = re.sub(f"[{UNSEEN}]", "", re.sub(f"[{SHAPED}]", lambda match: plain_letters(match[0]), text))
    return unicodedata.normalize("NFC", re.sub("[\u2010\u2011]", "-", text.replace("\u0364", "\u0308")))


def plain_letters(character):
    form = unicodedata.normalize("NFKC", character)
    return form if all(unicodedata.category(letter)[0] in "LMN" for letter in form) else character


def as_read(text, normal_form="nfc", segmenter="ngrams"):
    text = normalised(text) if normal_form == "nfc" else text
    return text if segmenter == "spacy" else re.sub("[\U00040000-\U0005ffff]", "\ufffd", text)


def tokens(text, lang="en", segmenter="ngrams", normal_form="nfc"):
    text = as_read(text, normal_form, segmenter)
    nlp = nlp_of(words_lang(lang, segmenter))
    found = []
    for is_run, part in parts(text, lang, segmenter):
        found += list(part) if is_run else [token.text for token in nlp(part)]
    return found


def terms(
    text,
    lang="en",
    lowercase=True,
    alphabetic=True,
    remove_stop_words=True,
    alphanumeric=False,
    singularize=False,
    segmenter="ngrams",
    normal_form="nfc",
):
    kept = []
    text = as_read(text, normal_form, segmenter)
    for is_run, part in parts(text, lang, segmenter):
        if is_run:
            kept += [part[i : i + n] for i in range(len(part)) for n in (1, 2, 3) if i + n <= len(part)]
        else:
            settings = lowercase, alphabetic, remove_stop_words, alphanumeric, singularize and lang == "en"
            kept += words_of(nlp_of(words_lang(lang, segmenter))(part), *settings)
    return kept + crossing(text, lang, segmenter, lowercase)


def words_of(tokens, lowercase, alphabetic, remove_stop_words, alphanumeric, singularize):
    kept = []
    for token in tokens:
        if token.is_space or (alphabetic and not is_of_letters(token.text)) or (remove_stop_words and token.is_stop):
            continue
        if alphanumeric and not re.search(r"[^\W_]", token.text):
            continue
        term = token.lower_ if lowercase else token.text
        kept.append(singular(term) if singularize else term)
    return kept


def is_of_letters(token):
    return token[0].isalpha() and "".join(x for x in token if not unicodedata.category(x).startswith("M")).isalpha()


def singular(word):
    if len(word) > 3:
        for plural, ending, but in [
            ("ies", "y", ("aies", "eies")),
            ("es", "e", ("aes", "ees", "oes")),
            ("s", "", ("ss", "us")),
        ]:
            if word.endswith(plural) and not word.endswith(but):
                return word[: -len(plural)] + ending
    return word


def grams(words, ngrams=1, chars=0, char_min=0):
    """List all n-grams as tuples: of words, the last words in turn, then of characters, the short ones of a word first.

    A word that is shorter than all n-grams of characters is one itself.
    """
    shortest = min(char_min or chars, chars)
    found = []
    for i in range(len(words)):
        for n in range(1, ngrams + 1):
            gram = tuple(words[i + 1 - n : i + 1])
            if len(gram) == n and (n == 1 or not any(is_of_run(word) for word in gram)):
                found.append(gram)
    for word in words if chars else ():
        if is_of_run(word):
            continue
        padded = f" {word.lower()} "
        if len(padded) < shortest:
            found.append((f"~{padded}~",))
        for n in range(shortest, chars + 1):
            found += [(f"~{padded[i : i + n]}~",) for i in range(len(padded) - n + 1)]
    return found


def counted(document, zones=None, ngrams=1, chars=0, char_min=0, **settings):
    """Give (zone, how often it has each n-gram) for every zone that counts."""
    texts = {"body": document} if isinstance(document, str) else document.zones
    for zone, text in texts.items():
        if zones is None or zone in zones:
            yield zone, Counter(grams(terms(text, **settings), ngrams, chars, char_min))


def average_lengths(documents, **settings):
    lengths = {}
    for document in documents:
        for zone, counts in counted(document, **settings):
            lengths.setdefault(zone, []).append(sum(counts.values()))
    return {zone: sum(each) / len(each) for zone, each in lengths.items()}


def term_frequencies(
    document, zones=None, zone_terms=False, sublinear_tf=False, ngram_weight=1, char_weight=1, k1=None, b=0.75,
    averages=None, **settings,
):  # fmt: skip
    """Give the weighted frequency of each n-gram, a tuple of words; those of a zone's own are prefixed."""
    tf = Counter()
    for zone, counts in counted(document, zones, **settings):
        prefixes = (
            [f"{zone}:"] if zone_terms is True else ["", f"{zone}:"] if zone_terms and zone in zone_terms else [""]
        )
        for prefix in prefixes:
            for gram, n in counts.items():
                value = 1 + math.log(n) if sublinear_tf else n
                if k1 is not None:
                    average = averages.get(zone, 0)
                    value = n / (n + k1 * (1 - b + b * (sum(counts.values()) / average if average else 1)))
                weight = 1 if zones is None else zones[zone]
                weight *= ngram_weight if len(gram) > 1 else char_weight if gram[0].startswith("~") else 1
                tf[tuple(prefix + word for word in gram)] += weight * value
    return tf


def idf(df, m, how="log"):
    return 1 if how == "none" else 1 + math.log((1 + m) / (1 + df)) if how == "smooth" else math.log(m / df)


def name_of(gram):
    """Name an n-gram "title:word word"."""
    prefix = gram[0][: gram[0].index(":") + 1] if ":" in gram[0] else ""
    return prefix + " ".join(word[len(prefix) :] for word in gram)


def tf_idf(
    train, documents, min_df=1, ngram_min_df=2, max_features=None, idf_="log", weighting="tfidf",
    k1=1.2, char_max_df=1.0, named=(), **settings,
):  # fmt: skip
    """Give the names of the columns and a dense float32 matrix; all words of `named` have a column."""
    m = len(train)
    if weighting == "bm25":
        lengths = {name: settings[name] for name in ("zones", "ngrams", "chars", "char_min") if name in settings}
        settings |= {"k1": k1, "averages": average_lengths(train, **lengths)}
    trained = [term_frequencies(document, **settings) for document in train]
    tfs = [term_frequencies(document, **settings) for document in documents]
    df = Counter(gram for tf in trained for gram in tf)
    kept = {gram for gram in df if df[gram] >= (ngram_min_df if len(gram) > 1 else min_df)}
    for gram in (gram for text in named for gram in term_frequencies(text, **settings) if len(gram) == 1):
        df[gram] = max(df[gram], 1)
        kept.add(gram)
    most = max(1, math.floor(char_max_df * m))
    kept -= {gram for gram in kept if gram[0].split(":")[-1].startswith("~") and df[gram] > most}
    columns = sorted(kept, key=name_of)
    if max_features is not None:
        columns = sorted(sorted(columns, key=lambda gram: (-df[gram], name_of(gram)))[:max_features], key=name_of)
    names = [name_of(gram) for gram in columns]
    X = np.zeros((len(documents), len(names)), np.float32)
    for i, tf in enumerate(tfs):
        row = [float(tf[column]) * (idf(df[column], m, idf_) if column in df else 0) for column in columns]
        squares = 0.0
        for x in row:
            squares += x * x
        if squares > 0:
            X[i] = [x / math.sqrt(squares) for x in row]
    return names, X


def product(X, W, b):
    """Add up x·w entry by entry in float32, from 0, and the bias at last."""
    scores = np.zeros((X.shape[0], W.shape[1]), np.float32)
    for i in range(X.shape[0]):
        for p in range(X.indptr[i], X.indptr[i + 1]):
            for k in range(W.shape[1]):
                scores[i, k] = np.float32(scores[i, k] + np.float32(X.data[p] * W[X.indices[p], k]))
        for k in range(W.shape[1]):
            scores[i, k] = np.float32(scores[i, k] + b[k])
    return scores


def sparse_product(X, starts, topics, values, b):
    """As `product`, of weights written out with their zeros."""
    W = np.zeros((X.shape[1], len(b)), np.float32)
    for feature in range(X.shape[1]):
        for e in range(starts[feature], starts[feature + 1]):
            W[feature, topics[e]] = values[e]
    return product(X, W, b)


def highest(scores, k):
    """Take the highest topic left, k times; nan is lower than all others, and of equals the first is taken."""
    rows = []
    for row in scores.tolist():
        left, taken = list(range(len(row))), []
        while len(taken) < k:
            numbers = [j for j in left if row[j] == row[j]] or left
            best = numbers[0]
            for j in numbers:
                if row[j] > row[best]:
                    best = j
            taken.append(best)
            left.remove(best)
        rows.append(taken)
    return np.array(rows, np.int32).reshape(len(scores), k)

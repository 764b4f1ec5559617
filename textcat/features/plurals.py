"""The plural of an English word → its singular, by three rules."""

_SHORTEST = 4  # letters; "gas", "was" and "yes" are no plurals


def singular(word: str) -> str:
    """Turn an English plural in lower case into its singular, or into what the rules take for it.

    The first of these endings that fits is changed: "ies" to "y" but not after "a" or "e", "es" to "e" but not after
    "a", "e" or "o", "s" to nothing but not after "s" or "u". Words of less than four letters are left as they are.

    Some results are no words ("series" gives "sery"), but two words of different meaning rarely become one. Source: the
    S stemmer of D. Harman, How effective is suffixing?, Journal of the American Society for Information Science 42
    (1991).
    """
    if len(word) < _SHORTEST or not word.endswith("s"):
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    return word if word[-2] in "su" else word[:-1]


def words_of(term: str) -> list[str]:
    """List the words that `singular` turns into a term."""
    if term[-1:] not in "suey" and len(term) >= _SHORTEST:  # sooner, for as most are
        return [term, f"{term}s"]
    candidates = (term, f"{term}s", f"{term[:-1]}ies") if term.endswith("y") else (term, f"{term}s")
    return [word for word in candidates if singular(word) == term]

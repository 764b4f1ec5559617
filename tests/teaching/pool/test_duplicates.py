"""Records of nearly the same words are one group, in memory and in an archive; groups are looked up and divided."""

from cases import every

from textcat.teaching.pool import Pool
from textcat.teaching.pool.index import single_terms

ABSTRACT = (
    "We compared the effects of two doses of a new drug on blood pressure in ninety patients with mild hypertension "
    "who had not been treated before, and followed them for twelve months; the larger dose lowered the diastolic "
    "pressure by six millimetres of mercury, the smaller one by four, and no patient left the study because of side "
    "effects."
)


def groups_of(texts):
    return Pool.from_documents(texts).groups.tolist()


def test_texts_of_nearly_the_same_words_are_one_group():
    other = ABSTRACT.replace("blood pressure", "heart rate").replace("ninety", "forty").replace("new drug", "diet")
    texts = [ABSTRACT, "Something else.", f"METHODS: {ABSTRACT.upper()}", f"{ABSTRACT} All rights reserved.", other]
    assert groups_of(texts) == [0, 1, 0, 0, 4]


def test_a_text_without_words_repeats_none():
    assert groups_of(["", "--", "one", "One!", ""]) == [0, 1, 2, 2, 4]


@every(
    "names, prefixes, of_zones, expected",
    [
        (["oil", "oil price", "title:oil", "~ oil~", "~l ~", "a b c"], ("title:",), False, [1, 0, 0, 1, 1, 0]),
        (["body:oil", "body:oil price", "title:~ oi~"], (), True, [1, 0, 1]),
        (["titles", "l ", "\u0438 \u0442"], (), False, [1, 1, 0]),
        ([], (), False, []),
    ],
)
def test_single_terms_are_columns_without_a_space_inside_and_without_a_prefix(names, prefixes, of_zones, expected):
    assert single_terms(names, prefixes, of_zones=of_zones).tolist() == list(map(bool, expected))

"""Sketches of texts, and the groups of texts that repeat each other."""

import random
from contextlib import closing

import numpy as np
import pytest
from cases import every
from naive_duplicates import groups as naive_groups
from naive_duplicates import sketch as naive_sketch

from textcat.duplicates import groups as module
from textcat.duplicates.groups import NEAR, Groups, find_groups, first_positions, sketch_texts

RANDOM = random.Random(7)
WORDS = ["".join(RANDOM.choices("abcdefghijklmnoprstuvw", k=RANDOM.randint(2, 10))) for _ in range(20_000)]


COMMON = ["".join(RANDOM.choices("aehnost", k=RANDOM.randint(1, 4))) for _ in range(100)]


def article(seed, n=150):
    random_ = random.Random(seed)
    return " ".join(random_.choice(WORDS if random_.random() < 0.6 else COMMON) for _ in range(n))


def zoned(texts):
    return [{"body": text} for text in texts]


def cut(text, share=0.6):
    words = text.split()
    return " ".join(words[: round(share * len(words))])


def reworded(text, seed=0):
    random_ = random.Random(seed)
    return " ".join(random_.choice(WORDS) if random_.random() < 0.2 else word for word in text.split())


def misread(text, seed=0):
    random_ = random.Random(seed)
    return "".join(random_.choice("aeiou") if random_.random() < 0.05 else letter for letter in text)


def texts_with_duplicates(n=60):
    texts = [article(i) for i in range(n)]
    changes = (str.upper, cut, reworded, misread)
    return texts + [changes[i % 4](text) for i, text in enumerate(texts)]


def test_a_sketch_is_what_its_naive_twin_gives():
    numbers = "Net 1,234,567 vs. 12.5 mln, 3. 4 ,5 6,a .7 8.. 9,,1 a.1 1.a 100 20."
    texts = ["", "one", "Two words, and the rest 42.", numbers, article(1), misread(article(2)).upper()]
    for row, text in zip(sketch_texts(zoned(texts)), texts, strict=True):
        expected = naive_sketch(text)
        assert (row["fingerprint"], row["words"]) == expected[:2]
        assert np.stack([row["bins"] & 15, row["bins"] >> 4], axis=1).ravel().tolist() == expected[2]
        assert row["sample"].tolist() == expected[3]


def test_groups_are_what_their_naive_twin_gives():
    texts = texts_with_duplicates()
    assert find_groups(zoned(texts)).tolist() == naive_groups(texts)


def nearly_alike(texts):
    with closing(Groups(NEAR)) as near:
        return first_positions([near.add(sketch_texts(zoned(texts)))])


def test_groups_of_nearly_the_same_words_are_what_their_naive_twin_gives():
    texts = texts_with_duplicates()
    texts += [cut(text, 0.9) for text in texts[:30]] + [cut(text, 0.75) for text in texts[30:60]]
    assert nearly_alike(texts).tolist() == naive_groups(texts, NEAR)


def labelled(abstract):
    words = abstract.split()
    return " ".join(["BACKGROUND:", *words[:40], "METHODS:", *words[40:90], "RESULTS:", *words[90:]])


def misprinted(abstract):
    return " ".join(word[1:] if i % 50 == 7 else word for i, word in enumerate(abstract.split()))


@every(
    "change",
    [
        str.upper,
        labelled,
        misprinted,
        lambda abstract: f"{abstract} (C) 2010 A Publisher Ltd. All rights reserved.",
        lambda abstract: f"[{abstract}]: a randomised trial.",
    ],
)
def test_records_of_one_work_in_several_databases_have_nearly_the_same_words(change):
    texts = [article(i, n=200) for i in range(100)]
    assert (nearly_alike(texts + [change(text) for text in texts]) == np.tile(np.arange(100), 2)).mean() > 0.97


def test_works_that_share_half_of_their_words_have_not_nearly_the_same_words():
    texts = [f"{article(i // 2, n=100)} {article(1000 + i, n=60)}" for i in range(100)]
    assert nearly_alike(texts).tolist() == [*range(100)]


@every("change, least", [(str.upper, 200), (cut, 190), (reworded, 180), (misread, 140)])
def test_planted_duplicates_are_found_and_nothing_else(change, least):
    texts = [article(i) for i in range(200)]
    found = find_groups(zoned(texts + [change(text) for text in texts]))
    assert (found[:200] == np.arange(200)).all()
    assert (found[200:] == np.arange(200)).sum() >= least
    assert set(found[200:] - np.arange(200)) <= {0, 200}


def test_case_punctuation_and_white_space_do_not_count():
    one, other = {"title": "WHEAT UP", "body": "Exports rose."}, {"body": "wheat up:\n“exports” — rose"}
    assert find_groups([one, other]).tolist() == [0, 0]


def test_a_text_of_few_words_is_found_only_if_all_words_are_the_same():
    short = " ".join(WORDS[:11])
    assert find_groups(zoned([short, short + ".", short + " more"])).tolist() == [0, 0, 2]


def earnings(seed):
    """Return a report of a fixed form, with figures of its own."""
    random_ = random.Random(seed)
    figures = [f"{random_.randrange(1, 999)},{random_.randrange(1000):03} vs {random_.randrange(99)}" for _ in range(9)]
    lines = ("Shr", "Net", "Revs", "Avg shrs", "Nine months Shr", "Net", "Revs", "Note prior year net", "Backlog")
    body = " ".join(f"{line} {figure} dlrs" for line, figure in zip(lines, figures, strict=True))
    head = f"{WORDS[seed]} corp 3rd qtr net {WORDS[seed + 1000]} Oct {seed % 28}"
    return f"{head} {body} restated for a stock split Reuter"


def test_reports_of_a_form_with_other_figures_are_no_duplicates_of_each_other():
    texts = [earnings(i) for i in range(300)]
    reports = zoned([*(article(i) for i in range(100)), *texts, *map(cut, texts)])
    found = find_groups(reports)
    assert (found[:400] != np.arange(400)).sum() <= 9  # of 300
    assert (found[400:] == np.arange(100, 400)).mean() >= 0.95


def test_cuts_of_short_texts_are_found():
    texts = [article(i, 25) for i in range(200)]
    found = find_groups(zoned([*texts, *map(cut, texts)]))
    assert (found[:200] == np.arange(200)).all()
    assert (found[200:] == np.arange(200)).mean() >= 0.95


def test_a_point_or_comma_within_a_number_belongs_to_it():
    whole, divided, text = sketch_texts(zoned(["1,234.5", "1 234 5", "v1.2, 3"]))
    assert (whole["words"], divided["words"], text["words"]) == (1, 3, 2)


def test_a_text_without_words_repeats_none():
    assert find_groups(zoned(["", "", "...", "."])).tolist() == [0, 1, 2, 3]
    assert find_groups([]).tolist() == []


def test_texts_without_spaces_are_found_by_pairs_of_characters():
    random_ = random.Random(3)
    texts = ["".join(chr(random_.randrange(0x4E00, 0x9000)) for _ in range(120)) for _ in range(20)]
    duplicates = [text[:80] for text in texts]
    assert find_groups(zoned(texts + duplicates)).tolist() == [*range(20), *range(20)]


def test_groups_do_not_depend_on_how_many_texts_are_given_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "FIRST_BITS", 4)  # the table is doubled again and again
    sketches = sketch_texts(zoned(texts_with_duplicates()))
    results = []
    for step in (1, 7, len(sketches)):
        groups = Groups()
        parts = [groups.add(sketches[i : i + step]) for i in range(0, len(sketches), step)]
        results.append([np.concatenate(column) for column in zip(*parts, strict=True)])
        groups.close()
    for result in results[1:]:
        for column, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(column, expected)


def test_a_text_stays_in_its_group_whatever_follows():
    texts = texts_with_duplicates()
    assert find_groups(zoned(texts[:90])).tolist() == find_groups(zoned(texts)).tolist()[:90]


def test_texts_of_one_form_do_not_hide_duplicates():
    form = " ".join(WORDS[:30])
    texts = [f"{form} {article(i, 100)}" for i in range(500)]
    found = find_groups(zoned([*texts, *map(cut, texts[:100])]))
    assert (found[500:] == np.arange(100)).mean() >= 0.9


def test_groups_say_if_their_temporary_file_cannot_be_read(monkeypatch):
    monkeypatch.setattr("textcat.base.disk.write_all", lambda file, data: None)  # as though it were cut off
    sketches = sketch_texts(zoned([article(1), cut(article(1))]))
    with closing(Groups()) as groups:
        groups.add(sketches[:1])
        with pytest.raises(OSError, match="samples"):
            groups.add(sketches[1:])


def test_similarity_is_one_for_copies_and_estimates_the_jaccard_coefficient_for_others():
    text = article(5, 400)
    groups = Groups()
    _, similarities, kept = groups.add(sketch_texts(zoned([text, text, cut(text)])))
    groups.close()
    assert np.isnan(similarities[0])
    assert similarities[1] == 1
    assert abs(similarities[2] - 0.6) < 0.25
    assert kept.tolist() == [True, False, True]

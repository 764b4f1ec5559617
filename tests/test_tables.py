"""What commands print: tables whole, names as they are, lines without trailing spaces."""

import io

import pytest
from rich.console import Console

from textcat.cli import output
from textcat.corpus.cards import Card
from textcat.progress import Stages
from textcat.recipe import Recipe, read_recipe
from textcat.training.selection import EXPECTED, Trial


def printed(function, *arguments, **options):
    console = Console(file=io.StringIO(), width=40)
    function(console, *arguments, **options)
    return console.file.getvalue().splitlines()


def test_names_that_look_like_markup_are_printed_as_they_are():
    assert printed(output.topic_terms, [("[bold]", 1.5)]) == ["term    weight", "[bold]     1.5"]
    card = Card("[red]", None, "folders", ["x"], title="[bold]Title", licence="[link]")
    assert printed(output.fetched, card, "/a/[b]")[0] == "corpus   [red]: [bold]Title"


def test_topics_come_the_largest_first_and_equals_by_name():
    manifest = {
        "topics": ["c", "a", "b"],
        "train_sizes": [1, 1, 5],
        "train_documents": 10,
        "facts": {"stopped": ["x", "y", "z"]},
    }
    lines = printed(output.topics, manifest, as_json=False)
    assert [line.split() for line in lines[1:]] == [
        ["b", "5", "0.5", "z"],
        ["a", "1", "0.1", "y"],
        ["c", "1", "0.1", "x"],
    ]


def test_words_stand_left_and_lines_have_no_trailing_spaces(tmp_path):
    cards = [Card(name, tmp_path, "folders", [name], urls=["https://example.org/" + name]) for name in ("a", "b" * 30)]
    lines = printed(output.corpora, [(cards[0], tmp_path), (cards[1], None)])
    assert lines == [line.rstrip() for line in lines]
    assert lines[1].index(str(tmp_path)) == lines[0].index("where") == lines[2].index("not here; ")


def test_a_study_prints_what_varies_and_the_recipe_to_take_and_writes_both(tmp_path):
    def trial(expected, sparsity, **learner):
        recipe = Recipe("mine", features={"min_df": 2}, learner={"tau_neg": -0.5, **learner})
        return Trial(recipe, {"ALL": 0.75, "RARE": float("nan"), EXPECTED: expected}, {"ALL": sparsity})

    trials = [trial(0.75, 462.0, tau_pos=20.0), trial(0.7499, 400.0, tau_pos="prevalence", kappa=-10.0)]
    lines = printed(output.study, trials, trials[1], Stages(), tmp_path)
    assert lines[1].split()[:2] == ["20", "-"]
    assert lines[2].split()[:2] == ["prevalence", "-10"]
    assert "The sparsest that ranks as well as the best over EXPECTED: tau_pos=prevalence, kappa=-10.0" in lines
    table = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    assert table[2].startswith("| 20 | - | 0.7500 |")
    assert read_recipe(tmp_path / "recipe.toml").learner == trials[1].recipe.learner


@pytest.mark.parametrize("n_topics", [3, 30])
def test_a_corpus_page_shows_the_ends_of_a_long_list_of_topics(n_topics):
    from textcat.documents import Corpus, Document

    documents = [
        Document(f"{topic}-{k}", {"body": "x"}, (f"t{topic:02}",))
        for topic in range(n_topics)
        for k in range(n_topics - topic)
    ]
    lines = printed(output.corpus, Corpus.from_documents("long", documents), 100)
    shown = [line.split()[0] for line in lines if line.startswith("t") and line[1].isdigit()]
    order = [f"t{topic:02}" for topic in range(n_topics)]
    assert shown == (order if n_topics == 3 else order[:5] + order[-5:])

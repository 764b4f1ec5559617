"""Vocabularies: what topics are called, from TSV, CSV and SKOS, and a corpus that has it."""

import builtins
import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcat.base.errors import TextcatError
from textcat.corpus.cards import card
from textcat.corpus.catalogue import open_corpus, reopen_corpus
from textcat.corpus.documents import Corpus, Document
from textcat.corpus.fetch import fetch_corpus
from textcat.corpus.vocabulary import Vocabulary

SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix t: <http://e.org/> .
t:1 a skos:Concept ; skos:prefLabel "tin"@en, "tina"@fi ; skos:altLabel "stannum"@en, "metal, tin"@en, "Zinn"@de .
t:2 a skos:Concept ; skos:prefLabel "gold"@en ; owl:deprecated true .
t:3 a skos:Concept ; skos:prefLabel "kulta"@fi .
t:4 a skos:Concept ; skos:prefLabel "Latin name" .
t:1 skos:hiddenLabel "tinn"@en, "stannum"@la ; skos:definition "A soft  metal."@en, "Pehme metall."@et .
t:1 skos:scopeNote "Also for alloys."@en, " "@sv .
t:2 skos:definition "Deprecated."@en .
t:5 a skos:ConceptScheme ; skos:prefLabel "scheme"@en .
"""
T3 = 't:3 skos:prefLabel "kulta"@en ; skos:scopeNote "Kova." .\n'
CSV = "uri,label_en,label_fi,notation\nhttp://e.org/1,tin,tina,1.1\n<http://e.org/3>,,kulta,\n"


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.tsv", "<http://e.org/1>\ttin\nhttp://e.org/1\tstannum\n\n<http://e.org/3>\tgold\t3.1\n"),
        (
            "v.tsv.gz",
            gzip.compress(b"\xef\xbb\xbfhttp://e.org/1\ttin\r\nhttp://e.org/1\tstannum\nhttp://e.org/3\tgold"),
        ),
        ("v.csv", "uri,label_en\nhttp://e.org/1,tin\nhttp://e.org/1,stannum\nhttp://e.org/3,gold\n"),
    ],
)
def test_tables_name_topics_the_preferred_name_first(tmp_path, name, text):
    assert Vocabulary.read(written(tmp_path, name, text)).names == {
        "http://e.org/1": ("tin", "stannum"),
        "http://e.org/3": ("gold",),
    }


def test_a_table_has_a_column_a_language(tmp_path):
    path = written(tmp_path, "v.csv", CSV)
    assert Vocabulary.read(path).names == {"http://e.org/1": ("tin",)}
    assert Vocabulary.read(path, "fi").names == {"http://e.org/1": ("tina",), "http://e.org/3": ("kulta",)}
    with pytest.raises(TextcatError, match=r"columns 'uri, label_en, .* 'uri' and 'label_de'; "):
        Vocabulary.read(path, "de")


@pytest.mark.parametrize("form", ["turtle", "xml"])
def test_skos_has_synonyms_languages_and_concepts_that_are_deprecated(tmp_path, form):
    rdflib = pytest.importorskip("rdflib")
    data = rdflib.Graph().parse(data=SKOS, format="turtle").serialize(format=form)
    path = written(tmp_path, {"turtle": "v.ttl.xz", "xml": "v.rdf.xz"}[form], lzma.compress(data.encode()))
    latin = {"http://e.org/4": ("Latin name",)}
    read = Vocabulary.read(path)
    assert read.names == {"http://e.org/1": ("tin", "metal, tin", "stannum", "tinn", "tina", "Zinn")} | latin
    assert read.descriptions == {"http://e.org/1": "A soft metal. Also for alloys. Pehme metall."}
    finnish = {"http://e.org/1": ("tina", "tin", "Zinn", "metal, tin", "stannum", "tinn"), "http://e.org/3": ("kulta",)}
    assert Vocabulary.read(path, "FI").names == finnish | latin


def test_skos_without_a_name_in_the_language_says_which_it_has(tmp_path):
    pytest.importorskip("rdflib")
    path = written(tmp_path, "v.ttl", SKOS.replace("t:4 a skos:Concept", "t:4 a skos:Collection"))
    with pytest.raises(TextcatError, match=r"'sv', but in en, fi: .*--vocabulary-lang"):
        Vocabulary.read(path, "sv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.ttl", "@prefix", r"v\.ttl is no turtle that rdflib reads \(.*\): mend it\.$"),
        ("v.rdf", "<rdf:RDF>\n", r"v\.rdf is no xml that rdflib reads \(.*\): mend it\.$"),
        ("v.nt", "<http://e.org/1> is tin .\n", r"v\.nt is no nt that rdflib reads \(.*\): mend it\.$"),
        ("v.ttl", b"\xff\xfe\x00", r"v\.ttl is no turtle that rdflib reads \(.*\): mend it\.$"),
        (
            "v.ttl",
            '<http://e.org/1> <http://e.org/name> "tin" .',
            r"names no topic: give it a skos:Concept with a skos:p",
        ),
    ],
)
def test_skos_that_cannot_be_used_is_told_in_a_sentence(tmp_path, name, text, message):
    pytest.importorskip("rdflib")
    with pytest.raises(TextcatError, match=message) as raised:
        Vocabulary.read(written(tmp_path, name, text))
    assert "\n" not in str(raised.value)


def test_notes_of_skos_describe_topics_and_descriptions_of_the_corpus_come_first(tmp_path):
    pytest.importorskip("rdflib")
    news = written(tmp_path, "news.jsonl", NEWS.replace("p1", "http://e.org/1").replace("p2", "kulta"))
    corpus = open_corpus(news, vocabulary=written(tmp_path, "v.ttl", SKOS + T3))
    assert corpus.descriptions == {"http://e.org/1": "A soft metal. Also for alloys. Pehme metall.", "kulta": "Kova."}
    assert "tinn. tina. Zinn A soft metal." in corpus.described()[0].zones["body"]


def test_without_rdflib_skos_is_refused_in_a_sentence(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name.startswith("rdflib"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TextcatError, match=r"v\.ttl .* pip install 'textcat-margin\[skos\]'"):
        Vocabulary.read(written(tmp_path, "v.ttl", SKOS))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.tsv", "p1\ttin\np2\n", r"v\.tsv: line 2 is 'p2'; it must be an id, a tab and a name"),
        ("v.tsv", "\n", "names no topic"),
        ("v.tsv", b"p1\t\xff", r"is not utf-8 \(byte 3\)"),
        ("v.csv", "id,name\n", r"columns 'id, name': it must have 'uri' and 'label_en'"),
        ("v.tsv", "p1\ttin\n<>\tgold\n", r"v\.tsv: line 2 is '<>.*it must be an id, a tab and a name"),
        ("v.csv", "uri,label_en\n>,tin\n", r"v\.csv: row 2 is .*; it must have a uri"),
        ("v.json", "{}", r"its name must end in one of \.tsv, \.csv, \.ttl, \.rdf, \.xml, \.nt"),
    ],
)
def test_what_is_no_vocabulary_is_told(tmp_path, name, text, message):
    with pytest.raises(TextcatError, match=message):
        Vocabulary.read(written(tmp_path, name, text))


def test_a_vocabulary_that_is_missing_is_told(tmp_path):
    with pytest.raises(TextcatError, match=r"v\.tsv cannot be read \(No such file.*\): check the path"):
        Vocabulary.read(tmp_path / "v.tsv")


# ---- corpora ----

NEWS = '{"id": 1, "text": "Tin rose.", "topics": ["p1"]}\n{"id": 2, "text": "Gold fell.", "topics": ["p2", "p1"]}\n'


def test_a_corpus_has_the_names_of_its_topics(tmp_path):
    news, names = written(tmp_path, "news.jsonl", NEWS), written(tmp_path, "v.tsv", "p1\ttin\np1\tstannum\np9\tlead\n")
    corpus = open_corpus(news, vocabulary=names)
    assert corpus.names == {"p1": ("tin", "stannum")}
    assert corpus.topics == ("p1", "p2")
    assert open_corpus(news).names == {}
    assert [d.zones["title"] for d in corpus.described()] == ["tin. stannum", "p2"]
    assert reopen_corpus(corpus.origin) == corpus


def test_a_description_stands_behind_the_names():
    topics = Document("1", {"body": "text"}, ("p1",))
    corpus = Corpus.from_documents("c", [topics], descriptions={"p1": "A metal."}, names={"p1": ("tin",), "p2": ("x",)})
    assert corpus.described()[0].zones["body"] == "tin A metal."
    assert Corpus.from_documents("c", [topics], "described", names={"p2": ("gold",)}).topics == ("p1", "p2")


def test_topics_that_are_labels_are_found_by_the_preferred_name(tmp_path):
    news = written(tmp_path, "news.jsonl", NEWS.replace("p1", "tin").replace("p2", "stannum"))
    names = written(tmp_path, "v.tsv", "p1\ttin\np1\tstannum\n")
    assert open_corpus(news, vocabulary=names).names == {"tin": ("tin", "stannum")}


def test_topics_that_look_like_a_name_or_an_id_are_found_unless_several_look_so():
    names = {
        "u:1": ("\u00c9conomie", "finance"),
        "u:\u00e9": ("Marine",),
        "u:3": ("Fi\u00e8vre",),
        "u:4": ("Fie\u0300vre",),
    }
    topics = ["E\u0301conomie", "Economie", "u:e\u0301", "Marine\u200e", "Fi\u00e8vre\u00ad", "Fie\u0300vre"]
    found = Vocabulary(names).of(topics)
    assert found == {topics[0]: names["u:1"], topics[2]: ("Marine",), topics[3]: ("Marine",), topics[5]: names["u:4"]}


def test_a_vocabulary_of_other_topics_is_refused(tmp_path):
    news, names = written(tmp_path, "news.jsonl", NEWS), written(tmp_path, "v.tsv", "http://e.org/1\ttin\n")
    message = r"v\.tsv has none of the corpus' topics: they are such as 'p1', its own such as 'http://e\.org/1'\. Give"
    with pytest.raises(TextcatError, match=message):
        open_corpus(news, vocabulary=names)


CARD = 'reader = "jsonl"\nfiles = ["news.jsonl", "news"]\nvocabulary = "v.tsv.gz"\n'


@pytest.mark.parametrize("place", ["beside the data", "beside the card", "in the source"])
def test_a_card_names_a_vocabulary(tmp_path, place):
    (tmp_path / "data").mkdir()
    (tmp_path / "cards").mkdir()
    described = written(tmp_path / "cards", "c.toml", CARD)
    folder = tmp_path / ("cards" if place == "beside the card" else "data")
    if place == "in the source":
        folder = folder / "news"
        folder.mkdir()
    written(folder if place == "in the source" else tmp_path / "data", "news.jsonl", NEWS)
    with pytest.raises(TextcatError, match=r"no file v\.tsv\.gz, "):
        open_corpus(described, tmp_path / "data")
    written(folder, "v.tsv.gz", gzip.compress(b"p1\ttin\n"))
    assert open_corpus(described, tmp_path / "data").names == {"p1": ("tin",)}
    other = written(tmp_path, "other.tsv", "p1\tZinn\n")
    assert open_corpus(described, tmp_path / "data", vocabulary=other).names == {"p1": ("Zinn",)}


def test_the_sum_of_a_vocabulary_is_compared(tmp_path):
    from hashlib import sha256

    sums = {"news.jsonl": sha256(NEWS.encode()).hexdigest(), "v.tsv": sha256(b"p1\ttin\n").hexdigest()}
    text = CARD + "[sha256]\n" + "".join(f'"{name}" = "{digest}"\n' for name, digest in sums.items())
    described = written(tmp_path, "c.toml", text)
    written(tmp_path, "news.jsonl", NEWS)
    written(tmp_path, "v.tsv.gz", gzip.compress(b"p1\ttin\n"))
    assert open_corpus(described).names == {"p1": ("tin",)}
    assert fetch_corpus(card(described)) == tmp_path / "news.jsonl"
    written(tmp_path, "v.tsv.gz", gzip.compress(b"p1\tTin\n"))
    for read in (open_corpus, lambda path: fetch_corpus(card(path))):
        with pytest.raises(TextcatError, match=r"v\.tsv has not the checksum the card of c gives"):
            read(described)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefgh"), max_size=3).map(tuple)),
    st.sets(st.sampled_from("abcdef"), min_size=1),
    st.sets(st.sampled_from("abcdef")),
)
def test_the_nearest_broader_concepts_that_are_topics_count_with_a_name_or_without(broader, topics, named):
    vocabulary = Vocabulary({topic: (f"name of {topic}",) for topic in named}, broader=broader)

    def nearest(concept, seen):
        found = set()
        for other in {*broader.get(concept, ())} - seen:
            found |= {other} if other in topics else nearest(other, {*seen, other})
        return found

    expected = {topic: found for topic in topics if (found := nearest(topic, {topic}))}
    assert {topic: {*others} for topic, others in vocabulary.broader_of(topics).items()} == expected
    if not topics <= named:
        return
    by_name = vocabulary.broader_of(f"name of {topic}" for topic in topics)
    assert {topic[-1]: {other[-1] for other in others} for topic, others in by_name.items()} == expected


def test_a_later_vocabulary_keeps_the_broader_topics_of_topics_that_it_does_not_have():
    before = {"a": ("b",), "c": ("b",)}
    assert Vocabulary({"x": ("ex",)}).broader_after("abc", before) == before
    later = Vocabulary({"c": ("see",)}, broader={"c": ("d",), "d": ("a",)})
    assert later.broader_after("abc", before) == {"c": ("a",)}  # which has a, with nothing broader
    assert Vocabulary({"a": ("ay",)}, broader={"x": ("y",)}).broader_after("abc", before) == {"c": ("b",)}

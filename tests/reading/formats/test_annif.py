"""Corpora of Annif: what is recognised as one, what is not, and what is wrong with a broken one."""

import gzip
import io
import json
import tarfile

import pytest
from read_sources import tarred, zipped

from textcat.base.errors import TextcatError
from textcat.corpus.catalogue import open_corpus
from textcat.reading import InputSettings, Record, Rejection, batch_records, find_sources, read_batches

SHORT = "Tin rose\t<http://e.org/1> <http://e.org/2>\nNo subject\t\nGold\t<http://e.org/2>\n"


def write(folder, **files):
    """Write files, whose names have an underscore for the dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def tagged(source, **settings):
    how = InputSettings(**settings)
    return [item for batch in read_batches(find_sources([source], how), how) for item in batch_records(batch, how)]


def topics(source, **settings):
    return {document.id: document.topics for document in open_corpus(source, settings=InputSettings(**settings)).train}


def test_short_texts_are_told_by_the_uris_of_the_first_line(tmp_path):
    source = write(tmp_path, news_tsv=SHORT) / "news.tsv"
    one, two = "http://e.org/1", "http://e.org/2"
    expected = {"news.tsv:1": (one, two), "news.tsv:2": (), "news.tsv:3": (two,)}
    assert topics(source) == topics(source, format="tsv") == topics(source, format="annif") == expected
    assert [item.zones for item in tagged(source)] == [{"body": t} for t in ("Tin rose", "No subject", "Gold")]


def test_where_the_first_line_has_no_uri_the_format_must_be_named(tmp_path):
    lines = SHORT.splitlines(keepends=True)
    source = write(tmp_path, news_tsv="".join([lines[1], lines[0], "only tagged\n"])) / "news.tsv"
    with pytest.raises(TextcatError, match=r"first row 'No subject, ', which seems to be no header: .* --columns"):
        open_corpus(source)
    assert isinstance(tagged(source)[0], Rejection)
    assert [item.zones["body"] for item in tagged(source, format="annif")] == ["No subject", "Tin rose", "only tagged"]
    with pytest.raises(TextcatError, match=r"news\.tsv: line 3 "):
        open_corpus(source, settings=InputSettings(format="annif"))


def test_a_table_with_a_header_stays_one(tmp_path):
    source = write(tmp_path, news_tsv="text\ttopics\nTin\t<http://e.org/1>\n") / "news.tsv"
    assert topics(source) == {"news.tsv:2": ("<http://e.org/1>",)}


def test_a_uri_without_brackets_is_told(tmp_path):
    source = write(tmp_path, news_tsv=f"{SHORT}Lead\thttp://e.org/3\n") / "news.tsv"
    message = r"line 4 has the subject 'http://e\.org/3': it must be a URI in <>, such as <http://example\.org/1>"
    with pytest.raises(TextcatError, match=message):
        open_corpus(source)
    write(tmp_path, c__1_txt="Tin", c__1_tsv="<http://e.org/1>\ttin\nhttp://e.org/2\tgold\n")
    with pytest.raises(TextcatError, match=r"1\.tsv .*'http://e\.org/2'"):
        open_corpus(tmp_path / "c")


TEXTS = {"1_txt": "Tin", "1_tsv": "<http://e.org/1>\ttin\n", "2_txt": "Gold", "2_key": "gold\n"}


def test_a_text_without_a_list_of_subjects_is_told(tmp_path):
    write(tmp_path, **TEXTS, **{"3_txt": "Lead"})
    with pytest.raises(TextcatError, match=r"3\.txt has no 3\.tsv or \.key"):
        open_corpus(tmp_path)
    write(tmp_path, **{"3_tsv": ""})
    assert topics(tmp_path) == {"1.txt": ("http://e.org/1",), "2.txt": ("gold",), "3.txt": ()}
    assert [item.zones["body"] for item in tagged(tmp_path)] == ["Tin", "Gold", "Lead"]


def test_texts_may_lie_in_folders_that_say_the_part(tmp_path):
    write(tmp_path, **{f"{part}__{name}": text for part in ("train", "test") for name, text in TEXTS.items()})
    corpus = open_corpus(tmp_path)
    assert [document.id for document in corpus.train] == ["train/1.txt", "train/2.txt"]
    assert [document.id for document in corpus.test] == ["test/1.txt", "test/2.txt"]
    assert topics(f"{tmp_path}/tr*") == {"1.txt": ("http://e.org/1",), "2.txt": ("gold",)}


def test_lists_of_subjects_may_come_behind_the_texts_of_an_archive(tmp_path):
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for name, text in [*TEXTS.items(), ("README", "Of Annif's kind.")]:
            info = tarfile.TarInfo("corpus/" + name.replace("_", "."))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    assert topics(tmp_path / "all.tar") == {"corpus/1.txt": ("http://e.org/1",), "corpus/2.txt": ("gold",)}


def test_a_table_called_as_a_text_is_no_list_of_subjects(tmp_path):
    write(tmp_path, news_tsv="text\ttopics\nTin\tmetal\n", news_txt="What news.tsv is.")
    assert topics(tmp_path) == {"news.tsv:2": ("metal",)}


def test_a_list_of_subjects_alone_is_no_input(tmp_path):
    write(tmp_path, **TEXTS)
    (rejection,) = tagged(tmp_path / "1.tsv")
    assert "lists the subjects of a text: name the folder that holds both, or the text" in rejection.reason
    with pytest.raises(TextcatError, match="lists the subjects of a text: name the folder"):
        open_corpus(tmp_path / "1.tsv")


def test_of_csv_and_json_only_what_annif_writes_is_taken_for_its(tmp_path):
    subjects = [{"label": "gold"}, {"uri": "http://e.org/1", "label": "tin"}]
    objects = [
        {"document_id": "a", "text": "Tin", "subjects": subjects},
        {"document_id": "a", "text": "Gold", "subjects": ["gold"]},
        {"id": 7, "document_id": "b", "text": "Lead", "topics": "lead", "subjects": subjects},
    ]
    write(tmp_path, news_jsonl="\n".join(map(json.dumps, objects)))
    expected = {"a": ("gold", "http://e.org/1"), "news.jsonl:2": (), "7": ("lead",)}
    assert topics(tmp_path / "news.jsonl") == expected
    assert [item.id.rpartition("/")[2] for item in tagged(tmp_path / "news.jsonl")] == list(expected)
    write(tmp_path, a_csv="document_id,text,subject_uris\nx,Tin,<http://e.org/1>  http://e.org/2\ny,Gold,\n")
    assert topics(tmp_path / "a.csv") == {"x": ("http://e.org/1", "http://e.org/2"), "y": ()}
    assert [item.id for item in tagged(tmp_path / "a.csv")] == ["x", "y"]
    write(tmp_path, b_csv="id,document_id,text,topics,subject_uris\nz,x,Tin,tin,<http://e.org/1>\n")
    assert topics(tmp_path / "b.csv") == {"z": ("tin",)}


def test_an_object_on_several_lines_is_a_document(tmp_path):
    text = json.dumps({"text": "Tin", "topics": ["tin"]}, indent=1)
    write(
        tmp_path,
        c__1_json=text,
        c__2_json=text.replace("Tin", "Gold"),
        c__3_json='{"text": "Lead"}\n{"text": "Zinc"}\n',
    )
    assert len(open_corpus(tmp_path / "c").train) == 4
    assert [item.zones["body"] for item in tagged(tmp_path / "c")] == ["Tin", "Gold", "Lead", "Zinc"]


def test_a_card_may_name_annifs_reader(tmp_path):
    write(tmp_path, news_tsv=SHORT, own_toml='reader = "annif"\nfiles = ["news.tsv"]\noptions = { test = "last 1" }\n')
    corpus = open_corpus(tmp_path / "own.toml")
    assert (len(corpus.train), len(corpus.test)) == (2, 1)


@pytest.mark.parametrize("container", ["folder", "zip", "tar", "tar.gz"])
def test_what_lists_subjects_without_a_text_beside_it_is_left_out_with_a_trace(tmp_path, container):
    """Only beside a text are such files ignored: a Keynote, and a glossary of URIs, have the same names."""
    texts = {
        "1.txt": "Tin",
        "1.tsv": "<http://e.org/1>\ttin\n",
        "2.txt": "Gold",
        "2.key": "gold\n",
        "talk.key": "PK\3\4",
        "d/1.key": "tin\n",
        "d/words.tsv": "<http://e.org/1>\ttin\n<http://e.org/2>\tgold\n",
        "speech.key": "Wheat exports rose.",
    }
    source = tmp_path / f"in.{container}"
    if container == "zip":
        source.write_bytes(zipped(*((name, text.encode()) for name, text in texts.items())))
    elif container == "folder":
        for name, text in texts.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
    else:
        data = tarred(*((name, text.encode()) for name, text in texts.items()))
        source.write_bytes(gzip.compress(data) if container == "tar.gz" else data)
    found = tagged(source)
    read = {item.source.removeprefix(f"{source}/") for item in found if isinstance(item, Record)}
    left = {item.source.removeprefix(f"{source}/") for item in found if isinstance(item, Rejection)}
    assert read == {"1.txt", "2.txt"}
    assert left == {"talk.key", "d/1.key", "d/words.tsv", "speech.key"}


@pytest.mark.parametrize("is_zipped", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
def test_subjects_of_texts_in_a_tar_inside_an_archive_are_ignored(tmp_path, is_zipped, is_packed):
    """Such a tar is read once, so that it cannot be told what else it holds."""
    tar = tarred(
        ("a/1.txt", b"Tin"), ("a/1.key", b"tin\n"), ("a/2.tsv", b"<http://e.org/1>\ttin\n"), ("a/2.txt", b"Gold")
    )
    inner = ("in.tgz", gzip.compress(tar)) if is_packed else ("in.tar", tar)
    outer = tmp_path / ("out.zip" if is_zipped else "out.tar")
    outer.write_bytes((zipped if is_zipped else tarred)(inner))
    assert [item.zones["body"] for item in tagged(outer)] == ["Tin", "Gold"]

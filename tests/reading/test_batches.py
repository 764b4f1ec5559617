"""Batches: whatever tagging reads, training reads, packed in every way; and from anywhere reading goes on."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import mailbox
import os
import pickle
import shutil
import tarfile
import threading
import zipfile
from email.message import EmailMessage
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import office_files
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_sources import COMPRESSIONS, LINES, faults, ids, read, tarred, zipped
from same_documents import BARE, tagged, trained_on

from textcat.base.errors import TextcatError
from textcat.corpus.cards import cards
from textcat.corpus.catalogue import open_corpus
from textcat.reading import Block, InputSettings, Record, find_sources, formats, read_batches

# Texts, titles and topics of the documents; only some formats have titles, or more than one topic.
ROWS = [
    {"id": "1", "title": "Tin up", "text": 'Tin "rose", they say.', "topics": "tin"},
    {"id": "2", "title": "Gold", "text": "Gold\nfell by 2.", "topics": "gold"},
    {"id": "3", "title": "Tin again", "text": "Käse; Zinn", "topics": "tin"},
]


STORY = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="{id}"><DATE>1</DATE><TOPICS><D>{topics}</D></TOPICS>'
    "<TEXT><TITLE>{title}</TITLE><DATELINE></DATELINE><BODY>{text}</BODY></TEXT></REUTERS>\n"
)


NEWS = (
    '<?xml version="1.0" encoding="utf-8"?><newsitem itemid="{id}" date="1996-08-20"><headline>{title}</headline><text>'
    '<p>{text}</p></text><metadata><codes class="bip:topics:1.0"><code code="{topics}"/></codes></metadata></newsitem>'
)


def delimited(separator):
    file = io.StringIO()
    writer = csv.DictWriter(file, list(ROWS[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(ROWS)
    return file.getvalue().encode()


def flat(row):
    return row["text"].replace("\n", " ")


def annif_csv(uris):
    file = io.StringIO()
    writer = csv.DictWriter(file, ["document_id", "title", "text", "subject_uris"])
    writer.writeheader()
    for row in ROWS:
        writer.writerow(
            {"document_id": row["id"], **{k: row[k] for k in ("title", "text")}, "subject_uris": uris[row["id"]]}
        )
    return file.getvalue().encode()


def annif_json(row):
    subject = {"uri": f"urn:{row['topics']}", "label": row["topics"]}
    return {"document_id": row["id"], "title": row["title"], "text": row["text"], "subjects": [subject]}


def parquet():
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), file)
    return file.getvalue()


def mbox(path, topic):
    box = mailbox.mbox(path)
    for row in ROWS:
        if row["topics"] == topic:
            message = EmailMessage()
            message["Subject"], message["Message-ID"] = row["title"], row["id"]
            message.set_content(row["text"], cte="8bit")
            box.add(message)
    box.close()
    return path.read_bytes()


def mail(row):
    message = EmailMessage()
    message["Subject"], message["Message-ID"] = row["title"], row["id"]
    message.set_content(row["text"], cte="8bit")
    message.add_alternative("<p>Not this.", subtype="html")
    message.add_attachment(b"\0not this", maintype="text", subtype="plain", filename="a.txt")
    return bytes(message)


def page(row):
    text = row["text"].replace("\n", "<br>").replace("ä", "&auml;")
    head = f"<head><title>{row['title']}</title><style>p {{}}</style></head>"
    return f"<!DOCTYPE html>{head}<nav>Home</nav><p>{text}<script>no()</script><p hidden>Not this.".encode()


def word(row):
    return office_files.word(row["text"], title=row["title"])


def pdf(row):
    return office_files.pdf(row["text"], Title=row["title"])


def markdown(row):
    return f"# {row['title']}\n\n{row['text']}\n".encode()


def in_folders(ending, written):
    return {f"{row['topics']}/{row['id']}{ending}": written(row) for row in (ROWS[1], ROWS[0], ROWS[2])}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The files of each format, by their names."""
    folder = tmp_path_factory.mktemp("boxes")
    uris = {row["id"]: f"<urn:{row['topics']}>" for row in ROWS}
    return {
        "annif": {"news.tsv": "".join(f"{flat(row)}\t {uris[row['id']]}\n" for row in ROWS).encode()},
        "annif texts": {
            **{f"{row['id']}.txt": row["text"].encode() for row in ROWS},
            "1.tsv": b"<urn:tin>\tTin\t1.1\n",
            "1.key": b"another\n",
            "2.tsv": b"<urn:gold>\tGold\n<urn:gold>\n",
            "3.key": b"urn:tin\n \n",
        },
        "annif csv": {"news.csv": annif_csv(uris)},
        "annif jsonl": {"news.jsonl": b"".join(json.dumps(annif_json(row)).encode() + b"\n" for row in ROWS)},
        "annif json": {f"{row['id']}.json": json.dumps(annif_json(row), indent=2).encode() for row in ROWS},
        "jsonl": {"news.jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)},
        "json": {"news.json": json.dumps(ROWS, indent=1).encode()},
        "csv": {"news.csv": delimited(";")},
        "tsv": {"news.tsv": delimited("\t")},
        "parquet": {"news.parquet": parquet()},
        "reuters": {"news.sgm": "".join(STORY.format(**row) for row in ROWS).encode("latin-1")},
        "rcv1": {f"{row['id']}newsML.xml": NEWS.format(**row).encode() for row in ROWS},
        "folders": {f"{row['topics']}/{row['id']}.txt": row["text"].encode() for row in (ROWS[1], ROWS[0], ROWS[2])},
        "html": in_folders(".html", page),
        "eml": in_folders(".eml", mail),
        "markdown": in_folders(".md", markdown),
        "docx": in_folders(".docx", word),
        "pdf": in_folders(".pdf", pdf),
        "mixed": {"gold/2.docx": word(ROWS[1]), "tin/1.htm": page(ROWS[0]), "tin/3.pdf": pdf(ROWS[2])},
        "mbox": {f"{topic}.mbox": mbox(folder / topic, topic) for topic in ("gold", "tin")},
    }


FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "reuters", "rcv1", "folders", "mbox")


FOLDERS = ("folders", "html", "eml", "markdown", "docx", "pdf", "mixed")


FORMATS += (*FOLDERS[1:], "annif", "annif texts", "annif csv", "annif jsonl", "annif json")


COMPRESSORS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".zst": zstandard.compress,
}


PACKINGS = ("plain", *COMPRESSORS, ".zip", ".tar", ".tar.gz", "zip in tar", "utf-16")


# What a packing does to a file does not depend on its format: most are tried with formats of each kind alone, such as
# lines, rows of a binary file, one document a file, texts and their topics, and mail.
OF_EACH_KIND = ("jsonl", "parquet", "rcv1", "mixed", "annif texts", "mbox")
WITH_ALL_FORMATS = ("plain", ".zip", "utf-16")


WITH_OWN_ENCODING = ("parquet", "mbox", "eml", "docx", "pdf", "mixed")  # binary formats, and mail


def zip_of(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tar_of(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def pack(folder, files, packing):
    """Write files in a packing, and return the path to read."""
    archives = {
        ".zip": lambda: zip_of(files),
        ".tar": lambda: tar_of(files),
        ".tar.gz": lambda: gzip.compress(tar_of(files)),
        "zip in tar": lambda: tar_of({"inner.zip": zip_of(files)}),
    }
    if packing in archives:
        path = folder / f"all{packing if packing.startswith('.') else '.tar'}"
        path.write_bytes(archives[packing]())
        return path
    for name, data in files.items():
        path = folder / "all" / f"{name}{packing if packing in COMPRESSORS else ''}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(COMPRESSORS.get(packing, bytes)(data))
    return folder / "all" if len(files) > 1 else path


def expected(form):
    rows = sorted(ROWS, key=lambda row: row["topics"]) if form in (*FOLDERS, "mbox") else ROWS
    titled = form not in ("folders", "annif", "annif texts")
    texts = [(row["title"] if titled else "", flat(row) if form == "annif" else row["text"]) for row in rows]
    return texts, [(f"urn:{row['topics']}" if "annif" in form else row["topics"],) for row in rows]


@pytest.mark.parametrize(
    ("packing", "form"),
    [
        (packing, form)
        for packing, form in itertools.product(PACKINGS, FORMATS)
        if form in OF_EACH_KIND or packing in WITH_ALL_FORMATS
        if packing != "utf-16" or form not in WITH_OWN_ENCODING
    ],
)
def test_training_and_tagging_read_the_same_documents(tmp_path, inputs, form, packing):
    files = inputs[form]
    if packing == "utf-16":
        own = "latin-1" if form == "reuters" else "utf-8"
        files = {name: data.decode(own).encode("utf-16") for name, data in files.items()}
    source = pack(tmp_path, files, packing)
    texts, topics = expected(form)
    assert trained_on(source) == (texts, topics)
    assert tagged(source) == texts


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet", "reuters", "folders", "mixed"])
def test_patterns_urls_and_servers_are_read_for_both(tmp_path, inputs, form):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed, which fsspec needs for http")
    texts, topics = expected(form)
    (tmp_path / "all.zip").write_bytes(zip_of(inputs[form]))
    for name, data in inputs[form].items():
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_bytes(data)
    sources = [(tmp_path / "all").as_uri(), (tmp_path / "all.zip").as_uri(), str(tmp_path / "al*.zip")]
    memory = fsspec.filesystem("memory")
    memory.pipe({"/all.zip": zip_of(inputs[form])})
    handler = partial(Quiet, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for source in (*sources, "memory://all.zip", f"http://127.0.0.1:{server.server_port}/all.zip"):
            assert trained_on(source) == (texts, topics), source
            assert tagged(source) == texts, source
        server.shutdown()
    memory.rm("/all.zip")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_tagging_minds_no_topics(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Tin", "topics": {"tin": 1}, "split": "dev"}\n')
    assert tagged(path) == [("", "Tin")]
    with pytest.raises(TextcatError, match=r"line 1 has the split 'dev'"):
        open_corpus(path)


# Archives around everything


@pytest.mark.parametrize("archive", [zip_of, tar_of])
@pytest.mark.parametrize("root", ["bbc", "data/bbc"])
def test_the_folder_that_all_files_of_an_archive_share_is_no_topic(tmp_path, archive, root):
    files = {f"{root}/README": b"All rights \xff.", f"{root}/business/1.txt": b"Tin", f"{root}/sport/2.txt": b"Ball"}
    path = tmp_path / f"bbc.{archive.__name__[:3]}"
    path.write_bytes(archive(files))
    corpus = open_corpus(path)
    assert corpus.topics == ("business", "sport")
    assert [document.id for document in corpus.train] == [f"{root}/business/1.txt", f"{root}/sport/2.txt"]


def test_two_documents_of_one_id_are_told_with_their_lines(tmp_path):
    (tmp_path / "train.csv").write_text("id,text,topics\n1,Tin,tin\n2,Gold,gold\n")
    (tmp_path / "test.csv").write_text("id,text,topics\n2,Ore,tin\n")
    with pytest.raises(TextcatError, match=r"'2', in test\.csv:2 and in train\.csv:3"):
        open_corpus(tmp_path)


@pytest.mark.parametrize(
    ("names", "alone"),
    [
        (("a.jsonl", "test.jsonl"), "test.jsonl"),
        (("a.jsonl", "in/b.jsonl", "in/test/c.jsonl"), "in/test"),
        (("train.jsonl", "test.jsonl"), ""),
        (("test.jsonl",), ""),
        (("test/a.jsonl", "test/b.jsonl"), ""),
        (("a.jsonl", "train.jsonl"), ""),
    ],
)
def test_a_test_file_without_a_training_file_beside_it_is_told_to_count_like_the_others(tmp_path, caplog, names, alone):
    for number, name in enumerate(names):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_text(json.dumps({"id": f"{number}", "text": "Tin", "topics": "tin"}))
    corpus = open_corpus(tmp_path / "all")
    assert bool(corpus.test) == ("train.jsonl" in names and "test.jsonl" in names)
    assert (f"the documents of {alone} count like the others" in caplog.text) == bool(alone)
    assert bool(caplog.text) == bool(alone)


def carded(folder, reader, **options):
    files = {"tsv": "a.tsv", "jsonl": "a.jsonl"}[reader]
    listed = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
    (folder / "own.toml").write_text(f'reader = "{reader}"\nfiles = ["{files}"]\noptions = {{ {listed} }}\n')
    return folder / "own.toml"


@pytest.mark.parametrize("reader", ["tsv", "jsonl"])
def test_the_last_documents_may_be_for_test(tmp_path, reader):
    (tmp_path / "a.tsv").write_text(BARE["tsv"])
    (tmp_path / "a.jsonl").write_text('{"text": "a", "topics": "p1", "split": "test"}\n{"text": "b"}\n{"text": "c"}\n')
    how = {"columns": ["title", "topics"], "topics_separator": " ", "plain_quotes": True} if reader == "tsv" else {}
    corpus = open_corpus(carded(tmp_path, reader, test="last 2", **how))
    assert [[one.id for one in part] for part in (corpus.train, corpus.test)] == [
        [f"a.{reader}:1"],
        [f"a.{reader}:{line}" for line in ((3, 4) if reader == "tsv" else (2, 3))],
    ]
    with pytest.raises(TextcatError, match=r"a\.\w+ has 3 documents, so the last 3 "):
        open_corpus(carded(tmp_path, reader, test="last 3", **how))
    with pytest.raises(TextcatError, match=r"'test' in .* cannot be 'first 3'; give such as 'last 1000'"):
        open_corpus(carded(tmp_path, reader, test="first 3", **how))


@pytest.mark.where_long("to read a million titles takes long")
@pytest.mark.parametrize(
    ("name", "topics", "first"),
    [
        ("yso-finna-sv", ("p12534", "p19993", "p2909", "p4229", "p425"), "akustik (fysiska egenskaper)"),
        ("yso-finna-en", ("p3650", "p8478", "p19839"), "wooden buildings"),
    ],
)
def test_titles_of_finna_are_as_their_card_says(name, topics, first, corpus_file):
    corpus, described = open_corpus(name, corpus_file(f"{name}.tsv.xz").parent), cards()[name]
    assert described.counts == {
        "documents": len(corpus.train) + len(corpus.test),
        "train": len(corpus.train),
        "test": len(corpus.test),
        "topics": len(corpus.topics),
    }
    assert corpus.train[0].topics == topics
    assert corpus.names[topics[0]] == (first,)
    assert corpus.names.keys() == set(corpus.topics)


# What goes wrong on the way


def test_a_file_that_vanishes_or_may_not_be_read_is_rejected_and_the_others_are_read(folder, monkeypatch):
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("Tin")
    how = InputSettings()
    sources = find_sources(["a.txt", "b.txt"], how)
    (folder / "a.txt").unlink()
    found = [item for batch in read_batches(sources, how) for item in formats.batch_records(batch, how)]
    assert faults(found)[0].reason == "The file cannot be read (No such file or directory)."
    assert ids(found) == ["b.txt"]


@pytest.mark.parametrize("length", range(95, 105))
def test_the_longest_record_may_have_just_so_many_bytes(folder, length):
    line = b'{"text": "%s"}' % (b"x" * (length - 12))
    (folder / "a.jsonl").write_bytes(line + b"\r\n" + line)
    (folder / "b.txt").write_bytes(b"x" * length)
    found = read("a.jsonl", "b.txt", max_bytes=100)
    assert len(line) == length
    assert len(faults(found)) == (0 if length < 100 else 1 if length == 100 else 3)


def test_many_small_files_are_one_piece_and_an_empty_one_counts(folder):
    (folder / "in").mkdir()
    for i in range(300):
        (folder / "in" / f"{i:03}.txt").write_text("")
    how = InputSettings(block_bytes=100 * 256)
    batches = list(read_batches(find_sources(["in"], how), how))
    assert [len(batch.blocks) for batch in batches] == [100, 100, 100]


def test_the_bytes_read_grow_up_to_the_size_of_the_sources(folder):
    (folder / "a.jsonl").write_bytes(LINES)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(LINES))
    (folder / "in").mkdir()
    (folder / "in" / "c.jsonl").write_bytes(LINES)
    (folder / "in" / "d.jpg").write_bytes(b"1234")
    how = InputSettings(block_bytes=300)
    sources = find_sources(["a.jsonl", "b.jsonl.gz", "in"], how)
    read = [batch.read for batch in read_batches(sources, how)]
    assert read == sorted(read)
    assert read[-1] == sum(source.size for source in sources)


# Going on

CSV_ROWS = st.lists(
    st.sampled_from(["1,Tin", '2,"a ""b"" c"', '3,"two\nlines, here"', '4,"open', '5,a"b', '6,"x"y', "", "7", '8,""'])
)


SGML = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="{}"><DATE></DATE><TOPICS></TOPICS>'
    "<TEXT><BODY>{}</BODY></TEXT></REUTERS>\n"
)


STORIES = st.lists(
    st.sampled_from([SGML.format(1, "Tin"), SGML.format(2, "gold " * 30), "<REUTERS>", "</REUTERS>", "junk\n"])
)


MAIL = st.lists(
    st.sampled_from(
        [
            "From a@b Thu Jan  1 00:00:00 1970\nSubject: Tin\n\nrose\n\n",
            "\n",
            "From here on\n\n",
            "long " * 30,
            "x\r\n\r\n",
        ]
    )
)


CONTENTS = st.one_of(
    st.tuples(
        st.just("jsonl"),
        st.lists(st.sampled_from(['{"text": "Tin"}\n', "\n", "{\r\n", '{"id": 7, "text": "é"}\n', "x" * 70])),
    ),
    st.tuples(st.just("lines"), st.lists(st.text("ab\n\r é", max_size=30))),
    st.tuples(st.just("csv"), CSV_ROWS.map(lambda rows: ["id,text\r\n", "\n".join(rows)])),
    st.tuples(st.just("reuters"), STORIES),
    st.tuples(st.just("mbox"), MAIL),
    st.tuples(st.just("text"), st.lists(st.text(max_size=40), max_size=1)),
)


WRAPS = ["", ".gz", ".bz2", ".xz", ".zst", "zip", "tar", "tgz", "folder"]


def wrapped(path, how, files):
    """Write files as they are (then only the first), compressed, or together in a folder or an archive."""
    if how == "folder":
        target = path / "folder"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for name, data in files:
            (target / name).write_bytes(data)
        return str(target)
    data = {"zip": lambda: zipped(*files), "tar": lambda: tarred(*files), "tgz": lambda: gzip.compress(tarred(*files))}
    ending = f".{how}" if how in data else how
    target = path / f"in{ending}"
    target.write_bytes(data[how]() if how in data else COMPRESSIONS.get(how, bytes)(files[0][1]))
    return str(target)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=CONTENTS,
    wrap=st.sampled_from(WRAPS),
    block=st.integers(1, 300),
    longest=st.sampled_from([20, 100, 5000]),
    bom=st.booleans(),
    copies=st.integers(1, 3),
    damage=st.integers(0, 40),
)
def test_from_the_end_of_any_piece_reading_goes_on_with_just_the_pieces_that_follow(
    tmp_path, contents, wrap, block, longest, bom, copies, damage
):
    form, parts = contents
    data = b"\xef\xbb\xbf" * bom + "".join(parts).encode() * 20
    place = wrapped(tmp_path, wrap, [(f"{i}.dat", data) for i in range(copies)])
    if os.path.isfile(place) and damage < 20:
        with open(place, "r+b") as file:
            file.truncate(max(os.path.getsize(place) - damage, 0))
    how = InputSettings(format=form, block_bytes=block, max_bytes=longest)
    sources = find_sources([place], how)
    batches = list(read_batches(sources, how))
    for i in range(0, len(batches), max(len(batches) // 7, 1)):
        start = json.loads(json.dumps(batches[i].end))
        assert [batch[:-1] for batch in read_batches(sources, how, start)] == [batch[:-1] for batch in batches[i + 1 :]]
    assert [batch.start for batch in batches[1:]] == [batch.end for batch in batches[:-1]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=CONTENTS, block=st.integers(1, 300), wrap=st.sampled_from(["", ".gz", "zip"]))
def test_the_records_do_not_depend_on_blocks_and_compression(tmp_path, contents, block, wrap):
    form, parts = contents
    data = "".join(parts).encode()
    place = wrapped(tmp_path, wrap, [("a.dat", data)])
    (tmp_path / "plain").write_bytes(data)
    (whole, found) = (
        [
            item._replace(id="", source="") if isinstance(item, Record) else item._replace(source="")
            for item in read(name, format=form, block_bytes=size)
        ]
        for name, size in ((tmp_path / "plain", 1 << 20), (place, block))
    )
    assert found == whole


@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_reading_goes_on_in_a_parquet_file_from_any_row_on(folder, rows):
    table = {"id": list(range(rows)), "text": [f"Tin rose by {i}. " * 5 for i in range(rows)]}
    pyarrow.parquet.write_table(pyarrow.table(table), "a.parquet", row_group_size=700)
    (folder / "b.zip").write_bytes(zipped(("a.parquet", (folder / "a.parquet").read_bytes())))
    how = InputSettings(block_bytes=8000)
    sources = find_sources(["a.parquet", "b.zip"], how)
    batches = list(read_batches(sources, how))
    found = [record for batch in batches for record in formats.batch_records(batch, how)]
    assert ids(found) == [str(i) for i in range(rows)] * 2
    assert [record.position for record in found] == list(range(1, rows + 1)) * 2
    assert len(batches) >= rows // 100
    for i in range(0, len(batches), max(len(batches) // 10, 1)):
        assert list(read_batches(sources, how, batches[i].end)) == batches[i + 1 :]


def test_pieces_and_chunks_can_be_pickled_as_they_are(folder):
    (folder / "a.jsonl").write_bytes(LINES + b"{")
    how = InputSettings()
    (batch,) = read_batches(find_sources(["a.jsonl"], how), how)
    again = pickle.loads(pickle.dumps(batch))
    assert (again, again.source, again.size) == (batch, "a.jsonl", len(LINES) + 1)
    assert isinstance(again.blocks[0], Block)
    assert list(formats.batch_records(again, how)) == list(formats.batch_records(batch, how))

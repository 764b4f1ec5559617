"""Whatever tagging reads, training reads: the same documents from every format, packed in every way, from anywhere."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import mailbox
import tarfile
import threading
import zipfile
from email.message import EmailMessage
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import docx
import fsspec
import matplotlib.figure
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from textcat.corpus.catalogue import cards, open_corpus
from textcat.errors import TextcatError
from textcat.reading import InputSettings, Record, Rejection, find_sources, formats, read_batches

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
    file, document = io.BytesIO(), docx.Document()
    document.core_properties.title = row["title"]
    document.add_paragraph(row["text"])
    document.save(file)
    return file.getvalue()


def pdf(row):
    figure, file = matplotlib.figure.Figure(), io.BytesIO()
    figure.text(0.1, 0.5, row["text"])
    figure.savefig(file, format="pdf", metadata={"Title": row["title"]})
    return file.getvalue()


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
COMPRESSIONS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
PACKINGS = ("plain", *COMPRESSIONS, ".zip", ".tar", ".tar.gz", "zip in tar", "utf-16")
WITH_OWN_ENCODING = ("parquet", "mbox", "eml", "docx", "pdf", "mixed")  # binary formats, and mail


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(files):
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
        ".zip": lambda: zipped(files),
        ".tar": lambda: tarred(files),
        ".tar.gz": lambda: gzip.compress(tarred(files)),
        "zip in tar": lambda: tarred({"inner.zip": zipped(files)}),
    }
    if packing in archives:
        path = folder / f"all{packing if packing.startswith('.') else '.tar'}"
        path.write_bytes(archives[packing]())
        return path
    for name, data in files.items():
        path = folder / "all" / f"{name}{packing if packing in COMPRESSIONS else ''}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(COMPRESSIONS.get(packing, bytes)(data))
    return folder / "all" if len(files) > 1 else path


def trained_on(source, **settings):
    """What a corpus holds: texts in order, and topics."""
    corpus = open_corpus(source, settings=InputSettings(**settings))
    return [(d.zones.get("title", ""), d.zones["body"].strip()) for d in corpus.train], [d.topics for d in corpus.train]


def tagged(source, **settings):
    """The texts that tagging reads of it."""
    how = InputSettings(**settings)
    items = [
        item for batch in read_batches(find_sources([source], how), how) for item in formats.batch_records(batch, how)
    ]
    assert not [item for item in items if isinstance(item, Rejection)]
    return [(item.zones.get("title", ""), item.zones.get("body", "").strip()) for item in items]


def expected(form):
    rows = sorted(ROWS, key=lambda row: row["topics"]) if form in (*FOLDERS, "mbox") else ROWS
    titled = form not in ("folders", "annif", "annif texts")
    texts = [(row["title"] if titled else "", flat(row) if form == "annif" else row["text"]) for row in rows]
    return texts, [(f"urn:{row['topics']}" if "annif" in form else row["topics"],) for row in rows]


@pytest.mark.parametrize(
    ("packing", "form"),
    [pair for pair in itertools.product(PACKINGS, FORMATS) if pair[0] != "utf-16" or pair[1] not in WITH_OWN_ENCODING],
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
    (tmp_path / "all.zip").write_bytes(zipped(inputs[form]))
    for name, data in inputs[form].items():
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_bytes(data)
    sources = [(tmp_path / "all").as_uri(), (tmp_path / "all.zip").as_uri(), str(tmp_path / "al*.zip")]
    memory = fsspec.filesystem("memory")
    memory.pipe({"/all.zip": zipped(inputs[form])})
    handler = partial(_Quiet, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for source in (*sources, "memory://all.zip", f"http://127.0.0.1:{server.server_port}/all.zip"):
            assert trained_on(source) == (texts, topics), source
            assert tagged(source) == texts, source
        server.shutdown()
    memory.rm("/all.zip")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_lines_of_text_are_documents_of_the_topic_their_file_is_named_after(tmp_path):
    for topic, texts in {"pos": "Fine.\nGood.\n", "neg": "Poor.\n"}.items():
        (tmp_path / f"{topic}.txt").write_text(texts)
    assert trained_on(tmp_path, lines=True) == (
        [("", "Poor."), ("", "Fine."), ("", "Good.")],
        [("neg",), *[("pos",)] * 2],
    )
    assert [text for _, text in tagged(tmp_path, lines=True)] == ["Poor.", "Fine.", "Good."]


# Columns and fields

ABSTRACTS = {
    "headline": "Tin up",
    "abstract": "Tin rose.",
    "note": "In May.",
    "codes": "3; 14",
    "part": "train",
    "nr": "7",
}
MAPPED = {
    "text_fields": ("abstract", "note"),
    "id_field": "nr",
    "topics_field": "codes",
    "topics_separator": ";",
    "split_field": "part",
}


def write(folder, form, row):
    path = folder / f"a.{form}"
    if form == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    elif form == "json":
        path.write_text(json.dumps([row]))
    elif form == "jsonl":
        path.write_text(json.dumps(row))
    else:
        separator = "\t" if form == "tsv" else ","
        path.write_text(separator.join(row) + "\n" + separator.join(map(str, row.values())) + "\n")
    return path


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_fields_are_mapped_for_every_format_that_has_them(tmp_path, form):
    path = write(tmp_path, form, ABSTRACTS)
    (document,) = open_corpus(path, settings=InputSettings(**MAPPED)).train
    assert (document.id, document.topics, document.split) == ("7", ("3", "14"), "train")
    assert document.zones == {"title": "", "body": "Tin rose.\nIn May."}
    assert tagged(path, **MAPPED) == [("", "Tin rose.\nIn May.")]
    path = write(tmp_path, form, {"title": "Tin up", **ABSTRACTS})
    for fields in (("abstract", "note"), ("title", "abstract", "note")):
        assert tagged(path, **{**MAPPED, "text_fields": fields}) == [("Tin up", "Tin rose.\nIn May.")]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    ("setting", "option"),
    [
        ("text_fields", "--text-field"),
        ("id_field", "--id-field"),
        ("topics_field", "--topics-field"),
        ("split_field", "--split-field"),
    ],
)
def test_a_field_that_is_not_there_is_refused_with_those_that_are(tmp_path, form, setting, option):
    path = write(tmp_path, form, ABSTRACTS)
    value = ("abstract", "nosuch") if setting == "text_fields" else "nosuch"
    known = r"'nosuch' \(only headline, abstract, note, codes, part, nr\): name the .* with "
    with pytest.raises(TextcatError, match=known + option):
        open_corpus(path, settings=InputSettings(**{**MAPPED, setting: value}))
    how = InputSettings(**{**MAPPED, setting: value})
    (item,) = [
        item for batch in read_batches(find_sources([path], how), how) for item in formats.batch_records(batch, how)
    ]
    # Labels are no matter of tagging.
    assert isinstance(item, Rejection if setting in ("text_fields", "id_field") else Record)


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_a_table_with_title_and_abstract_is_not_read_by_its_title_alone(tmp_path, form):
    path = write(tmp_path, form, {"title": "Tin up", "abstract": "Tin rose.", "topics": "tin"})
    sentence = r"has no column 'text' \(only title, abstract, topics\): name the texts' column with --text-field"
    with pytest.raises(TextcatError, match=sentence):
        open_corpus(path)
    (fault,) = [
        item for batch in read_batches(find_sources([path], InputSettings()), InputSettings()) for item in batch.blocks
    ]
    assert "has no column 'text' (only title, abstract, topics)" in fault.reason
    assert trained_on(path, text_fields=("title", "abstract"))[0] == [("Tin up", "Tin rose.")]


@pytest.mark.parametrize("label", [3, "3", [3], ["3"]])
@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_whole_numbers_are_names_of_topics(tmp_path, form, label):
    assert trained_on(write(tmp_path, form, {"text": "Tin", "topics": label}))[1] == [("3",)]


def test_quotes_may_be_ordinary_characters(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text\ttopics\n"Tin rose\ttin\n5" of tin"\ttin\n', encoding="utf-8")
    with pytest.raises(TextcatError, match=r"a\.tsv: the row of line 2 has wrong quotes"):
        open_corpus(path)
    assert trained_on(path, quotes=False)[0] == [("", '"Tin rose'), ("", '5" of tin"')]
    assert tagged(path, quotes=False, block_bytes=5) == [("", '"Tin rose'), ("", '5" of tin"')]


def test_tagging_minds_no_topics(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Tin", "topics": {"tin": 1}, "split": "dev"}\n')
    assert tagged(path) == [("", "Tin")]
    with pytest.raises(TextcatError, match=r"line 1 has the split 'dev'"):
        open_corpus(path)


# Archives around everything


@pytest.mark.parametrize("archive", [zipped, tarred])
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


# Files without a header, and parts by number

BARE = {
    "tsv": 'Tin "rose\tp1 p2\n \nGold fell\t p3  p1 \r\nLead\t\n',
    "csv": "Tin rose;p1 p2\nGold fell;p3 p1\nLead;\n",
}


@pytest.mark.parametrize("form", ["tsv", "csv"])
@pytest.mark.parametrize("mark", ["", "\ufeff", "utf-16"])
@pytest.mark.parametrize("quotes", [False, True])
def test_columns_are_named_where_no_row_has_their_names(tmp_path, form, mark, quotes):
    text = BARE[form].replace('"', "" if quotes else '"')
    (tmp_path / f"a.{form}").write_bytes(text.encode("utf-16") if mark == "utf-16" else (mark + text).encode())
    how = {"columns": ("title", "topics"), "topics_separator": " ", "quotes": quotes}
    titles = [(line.partition(";" if form == "csv" else "\t")[0], "") for line in text.splitlines() if line.strip()]
    topics = [("p1", "p2"), ("p3", "p1"), ()]
    assert trained_on(tmp_path / f"a.{form}", **how) == (titles, topics)
    assert tagged(tmp_path / f"a.{form}", **how) == titles
    one_by_one = InputSettings(**how, block_bytes=1)
    items = [
        record
        for batch in read_batches(find_sources([tmp_path / f"a.{form}"], one_by_one), one_by_one)
        for record in formats.batch_records(batch, one_by_one)
    ]
    assert [item.position for item in items] == ([1, 3, 4] if form == "tsv" else [1, 2, 3])


def test_rows_without_quotes_are_the_same_read_together_or_each_by_itself(tmp_path):
    header, rows = "id\ttext\ttopics\tsplit\n", ["1\tTin\tp1;p2\ttest", "", " \t", "2\t Gold \tp1\t", "\tx\t\ttrain"]
    how = InputSettings(quotes=False, topics_separator=";")
    for broken in ("", "3\ttoo few", "3\tNUL\0\tp1\t"):
        (tmp_path / "a.tsv").write_text(header + "\n".join([*rows, broken]) + "\r\n")
        together, single = (
            [
                (item[:3] if isinstance(item, Record) else item)
                for batch in read_batches(find_sources([tmp_path / "a.tsv"], how), how)
                for item in formats.batch_records(batch, how)
            ]
            for how in (how, how._replace(block_bytes=1))
        )
        assert together == single
        assert len(together) == (4 if broken else 3)
    with pytest.raises(TextcatError, match=r"a\.tsv: the row of line 7 has a NUL byte"):
        open_corpus(tmp_path / "a.tsv", settings=how)


def carded(folder, reader, **options):
    files = {"tsv": "a.tsv", "jsonl": "a.jsonl"}[reader]
    listed = ", ".join(f'{name} = "{value}"' for name, value in options.items())
    (folder / "own.toml").write_text(f'reader = "{reader}"\nfiles = ["{files}"]\noptions = {{ {listed} }}\n')
    return folder / "own.toml"


@pytest.mark.parametrize("reader", ["tsv", "jsonl"])
def test_the_last_documents_may_be_for_test(tmp_path, reader):
    (tmp_path / "a.tsv").write_text(BARE["tsv"])
    (tmp_path / "a.jsonl").write_text('{"text": "a", "topics": "p1", "split": "test"}\n{"text": "b"}\n{"text": "c"}\n')
    how = {"columns": "title, topics", "separator": " ", "quotes": "none"} if reader == "tsv" else {}
    corpus = open_corpus(carded(tmp_path, reader, test="last 2", **how))
    assert [[one.id for one in part] for part in (corpus.train, corpus.test)] == [
        [f"a.{reader}:1"],
        [f"a.{reader}:{line}" for line in ((3, 4) if reader == "tsv" else (2, 3))],
    ]
    with pytest.raises(TextcatError, match=r"a\.\w+ has 3 documents, so the last 3 "):
        open_corpus(carded(tmp_path, reader, test="last 3", **how))
    with pytest.raises(TextcatError, match=r"'test' is 'first 3': it must be such as 'last 1000'"):
        open_corpus(carded(tmp_path, reader, test="first 3", **how))


def test_titles_of_finna_are_as_their_card_says(finna_titles):
    corpus, described = open_corpus("yso-finna-en", finna_titles.parent), cards()["yso-finna-en"]
    assert described.counts == {
        "documents": len(corpus.train) + len(corpus.test),
        "train": len(corpus.train),
        "test": len(corpus.test),
        "topics": len(corpus.topics),
    }
    assert corpus.train[0].topics == ("p3650", "p8478", "p19839")
    assert corpus.names["p3650"] == ("wooden buildings",)
    assert corpus.names.keys() == set(corpus.topics)

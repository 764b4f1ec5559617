"""Scanned pages: ALTO, and METS with the ALTO files beside it, also in zips and tars."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from random import Random

from textcat.reading.containers import Neighbours, listed_neighbours
from textcat.reading.streams import file_stream

from .checks import check_file, check_items, check_sources, source
from .inputs import chosen, documents, with_settings
from .news import MARKUP
from .target import Target

_HEAD = b'<?xml version="1.0" encoding="%s"?>\n'
_BLOCK = (
    b'<TextBlock ID="b1" LANG="en"><TextLine ID="l1"><String ID="s1" CONTENT="Tin" WC="0.5"/><SP/><String ID="s2" '
    b'CONTENT="Erz-" SUBS_TYPE="HypPart1" SUBS_CONTENT="Erzgrube" WC="1"/><HYP CONTENT="-"/></TextLine><TextLine>'
    b'<String CONTENT="grube" SUBS_TYPE="HypPart2" SUBS_CONTENT="Erzgrube"/></TextLine></TextBlock>'
)
_ALTO = (
    _HEAD % b"utf-8"
    + (
        b'<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><ReadingOrder><OrderedGroup ID="g"><ElementRef ID="r" '
        b'REF="b2 b1"/></OrderedGroup></ReadingOrder><Layout><Page ID="P1" LANG="de"><PrintSpace ID="p">%s'
        b'<ComposedBlock ID="c"><TextBlock ID="b2"><TextLine><String ID="s3" CONTENT="T&#233;n &amp;"/></TextLine>'
        b"</TextBlock></ComposedBlock><Illustration/></PrintSpace></Page></Layout></alto>"
    )
    % _BLOCK
)
_METS = _HEAD % b"utf-8" + (
    b'<mets xmlns:xlink="http://www.w3.org/1999/xlink" LABEL="Daily"><dmdSec ID="m"><mods><titleInfo><title>D</title>'
    b"</titleInfo><originInfo><dateIssued>1860-05-01</dateIssued></originInfo><languageTerm>en</languageTerm></mods>"
    b'</dmdSec><fileSec><fileGrp USE="ALTO"><file ID="f1"><FLocat xlink:href="file://./1.xml"/></file><file ID="f2">'
    b'<FLocat xlink:href="2.xml"/></file></fileGrp></fileSec><structMap TYPE="PHYSICAL"><div DMDID="m"><div ID="p1">'
    b'<fptr FILEID="f1"/></div><div ID="p2"><fptr><par><area FILEID="f2"/></par></fptr><div ID="q"><fptr><area '
    b'FILEID="f2" BEGIN="s1" END="s2"/></fptr></div></div></div></structMap><structMap TYPE="LOGICAL"><div DMDID="m">'
    b'<div ID="a" TYPE="ARTICLE" LABEL="L"><div TYPE="HEADING"><fptr><area FILEID="f1" BETYPE="IDREF" BEGIN="b1"/>'
    b'</fptr></div><div TYPE="BODY"><fptr><seq><area FILEID="f1" BEGIN="c"/><area FILEID="f2" BEGIN="b1"/></seq></fptr>'
    b'</div></div><div ID="a2" TYPE="article"/></div></structMap><structLink><smLink xlink:from="a2" xlink:to="q"/>'
    b"</structLink></mets>"
)
_POINTERS = _METS.replace(b"</fileSec>", b"</fileSec><structMap><div><mptr xlink:href='m.xml'/></div></structMap>")
_BETWEEN = b"\n-----\n"  # the files of an input: METS, and the pages 1.xml, 2.xml
_NAMES_OF_ALTO = (
    b"alto Layout Page PrintSpace ComposedBlock TextBlock TextLine String SP HYP ReadingOrder ElementRef OrderedGroup "
    b"UnorderedGroup Illustration Glyph"
).split()
_WORDS_OF_ALTO = (
    b'CONTENT="a" SUBS_TYPE="HypPart1" SUBS_TYPE="HypPart2" SUBS_CONTENT="Erzgrube" WC="nan" WC="1e999" ID="b1" '
    b'REF="b1" LANG="de" language="fr" CONTENT="&#173;"'
).split()
_NAMES_OF_METS = (
    b"mets fileSec fileGrp file FLocat structMap div fptr area par mptr structLink smLink smLinkGrp smArcLink "
    b"smLocatorLink dmdSec mods title date"
).split()
_WORDS_OF_METS = (
    b'TYPE="ARTICLE" TYPE="PHYSICAL" TYPE="BODY" TYPE="AUTHOR" FILEID="f1" BEGIN="s1" END="l1" BETYPE="BYTE" file: '
    b'xlink:href="../1.xml" xlink:href="/etc/passwd" xlink:href="http://a/b.xml" xlink:href="m.xml" ID="p1" ID="a" '
    b'xlink:href="%00.xml" DMDID="m" xlink:from="a" xlink:to="a" xlink:label="a" MIMETYPE="application/alto+xml" '
    b'USE="fulltext" .xml %2e%2e/'
).split()


def _check_alto(data: bytes) -> None:
    settings, way, data = chosen(data)
    settings = settings._replace(format="alto", fields=() if settings.plain_quotes else ("*",))
    check_file("a.xml", "alto", data, settings, way)
    documents("news", "a.xml", data)


def _files(data: bytes) -> dict[str, bytes]:
    return dict(zip(("m.xml", "1.xml", "2.xml"), data.split(_BETWEEN, 2), strict=False))


def _neighbours(files: dict[str, bytes]) -> Neighbours:
    return listed_neighbours(lambda: ((name, partial(_opened, data)) for name, data in files.items()))


def _opened(data: bytes) -> object:
    return file_stream(io.BytesIO(data))


def _check_mets(data: bytes) -> None:
    settings, way, data = chosen(data)
    settings = settings._replace(fields=() if settings.plain_quotes else ("*",))
    files = _files(data)
    as_mets = settings._replace(format="mets")
    single = source("m.xml", files["m.xml"], as_mets, way)._replace(neighbours=_neighbours(files))
    _, items = check_sources([single], as_mets)
    check_items([single], items, as_mets)
    first = len(data) % 3  # in any order
    names = [*files][first:] + [*files][:first]
    packed = _zipped if way else _tarred
    archive = source("a.zip" if way else "a.tar", packed({name: files[name] for name in names}), settings, 0)
    check_sources([archive], settings)


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _change_mets(data: bytes, change: Callable[[bytes], bytes], random: Random) -> bytes:
    """Change one of the files, mostly METS."""
    head, files = data[:2], data[2:].split(_BETWEEN, 2)
    which = 0 if random.random() < 0.7 else random.randrange(len(files))
    files[which] = change(files[which])
    return (change(head)[:2].ljust(2, b"\0") if random.random() < 0.1 else head) + _BETWEEN.join(files)


def _tags(names: list[bytes]) -> list[bytes]:
    return [tag for name in names for tag in (b"<%s>" % name, b"</%s>" % name, b"<%s/>" % name)]


_UTF16 = _ALTO.decode().replace("utf-8", "utf-16").encode("utf-16")
ALTO = Target(
    _check_alto,
    lambda: with_settings(_ALTO, _UTF16, _ALTO[:-9], b""),
    (*MARKUP, *_tags(_NAMES_OF_ALTO), *_WORDS_OF_ALTO),
)
METS = Target(
    _check_mets,
    lambda: with_settings(*(_BETWEEN.join((one, _ALTO, _ALTO)) for one in (_METS, _POINTERS, _METS[:-40])), _METS, b""),
    (*MARKUP, *_tags(_NAMES_OF_METS), *_WORDS_OF_METS, _BETWEEN),
    _change_mets,
)

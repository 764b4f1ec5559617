"""Tags in the bytes of NewsML-G2 and NITF."""

import re

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from lines_run import lines_run
from lxml import etree
from news_items import NITF, g2_item
from news_tags import CORN, CREATOR, NAMED, TAGS, TIN, TOPICS, changed, tags

from textcat.reading import InputSettings, LabelSettings
from textcat.reading.formats import FORMATS
from textcat.reading.formats.news import subject_of
from textcat.reading.records import Block
from textcat.tagging.concepts import Tag, concept_of
from textcat.tagging.tags_in_xml import EDITS_OF, edits_of_newsml_g2, edits_of_nitf

SETTINGS = InputSettings(labels=LabelSettings())
ITEM = NITF[NITF.index("<nitf") :].strip().encode()


NAMES = ("qcode", "uri", "literal")


def topics_of(form, data):
    (record,) = FORMATS[form].records(Block("a.xml", form, data), SETTINGS)
    return record.topics


def g2(meta, prefix=""):
    text = "<inlineData>Tin.</inlineData>"
    item = f"<newsItem><itemMeta/>{meta}<contentSet>{text}</contentSet></newsItem>"
    return (item if not prefix else re.sub(r"<(/?)(newsItem|itemMeta|contentSet)", rf"<\1{prefix}\2", item)).encode()


def subjects_in(data):
    return re.findall(rb"<(?:\w+:)?subject [^>]*textcat[^>]*>", data)


def test_a_news_item_gets_subjects_behind_its_own():
    data = g2_item().strip().encode()
    found = changed(data, edits_of_newsml_g2(data, TAGS, CREATOR))
    last = b'<subject qcode="house:tin"/>'
    space, how = b"\n   ", b'how="howextr:tool" creator="textcat:house-model"'
    added = (
        b'%s<subject qcode="medtop:20000225" confidence="87" relevance="100" %s><name>corn &amp; &lt;wheat&gt;</name>'
        b'</subject>%s<subject uri="http://cv.iptc.org/newscodes/mediatopic/20000170" relevance="40" %s/>'
        b'%s<subject literal="&#233;tain gris" confidence="3" %s/>' % (space, how, space, how, space, how)
    ).replace(space, b"")
    where = found.index(last) + len(last)
    assert found[where : where + len(added)] == added
    assert data == found.replace(added, b"", 1)
    assert topics_of("newsml-g2", found) == ("medtop:20000170", "medtop:20000171", "house:tin", TOPICS[0], TOPICS[2])


@every(
    "meta, expected",
    [
        ("<contentMeta>\n <icon/>\n <headline>A</headline></contentMeta>", "<icon/>\n S\n <headline>"),
        ("<contentMeta><urgency>1</urgency><creator/><headline>A</headline></contentMeta>", "<creator/>S<headline>"),
        ("<contentMeta><headline>A</headline><language tag='en'/><by/></contentMeta>", "<language tag='en'/>S<by/>"),
        ("<contentMeta>\n\t<headline>A</headline></contentMeta>", "<contentMeta>\n\tS\n\t<headline>"),
        ("<contentMeta />", "<contentMeta >S</contentMeta>"),
        ("<contentMeta></contentMeta>", "<contentMeta>S</contentMeta>"),
        ("", "<itemMeta/><contentMeta>S</contentMeta><contentSet>"),
        ("<contentMeta><x:y><subject/></x:y></contentMeta>", "<contentMeta>S<x:y>"),
    ],
)
def test_subjects_are_where_the_schema_wants_them(meta, expected):
    data = g2(meta)
    found = changed(data, edits_of_newsml_g2(data, [NAMED], CREATOR))
    (subject,) = subjects_in(found)
    assert expected.encode() in found.replace(subject, b"S")


def test_a_prefix_is_that_of_the_element_around():
    data = g2("<g:contentMeta><g:language tag='en'/></g:contentMeta>", "g:")
    found = changed(data, edits_of_newsml_g2(data, [CORN], CREATOR))
    assert b"tag='en'/><g:subject qcode=\"medtop:20000225\"" in found
    assert b"</g:name></g:subject></g:contentMeta>" in found


def test_a_nitf_gets_classifiers_in_its_identified_content():
    found = changed(ITEM, edits_of_nitf(ITEM, TAGS, CREATOR))
    added = (
        b'\n    <classifier class="textcat:house-model" type="medtop" value="20000225">corn &amp; &lt;wheat&gt;'
        b'</classifier>\n    <classifier class="textcat:house-model" type="http://cv.iptc.org/newscodes/mediatopic/" '
        b'value="20000170"/>\n    <classifier class="textcat:house-model" value="&#233;tain gris">&#233;tain gris'
        b"</classifier>"
    )
    assert found == ITEM.replace(b"Tin ore</classifier>", b"Tin ore</classifier>" + added)
    assert {*topics_of("nitf", found)} == {*topics_of("nitf", ITEM), *TOPICS}


@every(
    "nitf, expected",
    [
        ("<nitf>\n <body/></nitf>", "<nitf>\n <head>\n  <docdata>\n   <identified-content>\n    C\n   </id"),
        ("<nitf><head><title>A</title><pubdata/></head></nitf>", "</title><docdata><identified-content>C</id"),
        ("<nitf><head><pubdata/></head></nitf>", "<head><docdata><identified-content>C</identified-content></docdata>"),
        ("<nitf><head><docdata/></head></nitf>", "<docdata><identified-content>C</identified-content></docdata>"),
        ("<nitf><head><docdata><urgency/></docdata></head></nitf>", "<urgency/><identified-content>C</identified-"),
        ("<nitf><body><head/></body></nitf>", "<nitf><head><docdata><identified-content>C</identified-content>"),
    ],
)
def test_what_holds_classifiers_is_made_where_it_is_missing(nitf, expected):
    data = nitf.encode()
    found = changed(data, edits_of_nitf(data, [TIN], CREATOR))
    etree.fromstring(found)
    assert expected.encode() in re.sub(rb"<classifier [^>]*/>", b"C", found)
    assert found == changed(found, edits_of_nitf(found, [TIN], CREATOR))


RSS = (
    b"<item><title>Tin</title>\n <category domain='d'>a</category>\n "
    b"<m:category xmlns:m='n' domain='textcat:x'/><guid>1</guid></item>"
)
ATOM = b"<a:entry><a:id>1</a:id>\n <a:title>Tin</a:title><category scheme='textcat:x'/></a:entry>"


def test_an_item_of_a_feed_gets_categories_behind_its_own():
    found = changed(RSS, EDITS_OF["rss"](RSS, TAGS, CREATOR))
    added = (
        b'\n <category domain="textcat:house-model">medtop:20000225</category>'
        b'\n <category domain="textcat:house-model">http://cv.iptc.org/newscodes/mediatopic/20000170</category>'
        b'\n <category domain="textcat:house-model">&#233;tain gris</category>'
    )
    assert found == RSS.replace(b"a</category>", b"a</category>" + added)
    assert topics_of("rss", found) == ("d:a", *TOPICS)
    found = changed(ATOM, EDITS_OF["atom"](ATOM, TAGS[:1], CREATOR))
    added = b'<a:category scheme="textcat:house-model" term="medtop:20000225" label="corn &amp; &lt;wheat&gt;"/>'
    assert found == ATOM.replace(b"</a:entry>", added + b"</a:entry>")


@pytest.mark.parametrize("form", ["rss", "atom"])
@given(tags, tags)
def test_our_categories_are_replaced_and_read_again(form, first, second):
    data = RSS if form == "rss" else ATOM.replace(b"a:", b"")
    data = data.replace(b"m:category", b"m:c")
    found = changed(data, EDITS_OF[form](data, first, CREATOR))
    again = changed(found, EDITS_OF[form](found, second, CREATOR))
    assert changed(again, EDITS_OF[form](again, second, CREATOR)) == again
    bare = changed(again, EDITS_OF[form](again, [], CREATOR))
    assert bare == changed(data, EDITS_OF[form](data, [], CREATOR))
    assert {*topics_of(form, again)} == {*topics_of(form, bare)} | {
        subject_of(tag.concept.topic).topic for tag in second
    }


children = st.lists(
    st.sampled_from(
        [
            "<icon/>",
            "<language tag='en'/>",
            '<headline>A &lt;subject creator="textcat:x"/></headline>',
            "<subject qcode='a:b'><name>n</name></subject>",
            '<subject creator="me:x" qcode="a:c"/>',
            "<!-- <subject creator='textcat:x'/> -->",
            "<subject creator='textcat:old' literal='old'><name>o</name></subject>",
            "<w:z><subject creator='textcat:x'/></w:z>",
        ]
    ),
    max_size=6,
)


@given(children, st.sampled_from(["", "\n  ", " \r\n\t"]), tags, tags)
def test_our_subjects_are_replaced_and_others_never_touched(parts, space, first, second):
    data = g2(f"<contentMeta>{''.join(space + part for part in parts)}{space}</contentMeta>")
    own = "textcat:old"
    without = g2(f"<contentMeta>{''.join(space + part for part in parts if own not in part)}{space}</contentMeta>")
    found = changed(data, edits_of_newsml_g2(data, first, CREATOR))
    assert changed(found, edits_of_newsml_g2(found, first, CREATOR)) == found
    again = changed(found, edits_of_newsml_g2(found, second, CREATOR))
    meta = etree.fromstring(again.replace(b"w:z", b"wz")).find("contentMeta")
    ours = [one for one in meta if one.tag == "subject" and one.get("creator") == CREATOR]
    assert [next(one.get(name) for name in NAMES if one.get(name)) for one in ours] == [
        tag.concept.topic for tag in second
    ]
    assert changed(again, edits_of_newsml_g2(again, [], CREATOR)) == without


@every("form", ["newsml-g2", "nitf"])
@every("filling", ["O", "P", "OP", "<!--O-->", "<?O?>", "<h><![CDATA[O]]></h>", "<x:y z='>'>O</x:y>"])
def test_the_work_grows_as_the_number_of_elements_does(form, filling):
    name, creator = ("subject", "creator") if form == "newsml-g2" else ("classifier", "class")
    filling = filling.replace("O", f'<{name} {creator}="textcat:old"/>').replace("P", f"<{name}/>")
    head, end = ITEM.split(b"<identified-content>")[0], b"</identified-content></docdata></head></nitf>"

    def work(n):
        inside = filling * n
        nitf = head + b"<identified-content>" + inside.encode() + end
        data = g2(f"<contentMeta>{inside}</contentMeta>") if form == "newsml-g2" else nitf
        return lines_run(EDITS_OF[form], data, TAGS, CREATOR)

    assert work(80) < 2.2 * work(40)


def test_a_subject_of_people_stays_whatever_is_in_its_attributes():
    for attributes in ("é=\" creator='textcat:x'\"", "q=\" creator='textcat:x'\"", "x:creator='textcat:x'"):
        subject = f"<subject {attributes}/>"
        data = g2(f"<contentMeta>{subject}</contentMeta>")
        assert subject.encode() in changed(data, edits_of_newsml_g2(data, TAGS, CREATOR))


@given(st.text(max_size=8), st.text(max_size=8))
def test_any_text_is_written_as_well_formed_xml(topic, name):
    nitf = ITEM.replace(b"&eacute;", b"")
    for form, data in (("newsml-g2", g2("<contentMeta/>")), ("nitf", nitf)):
        found = changed(data, EDITS_OF[form](data, [Tag(concept_of(topic, name), 1, 1)], CREATOR))
        etree.fromstring(found)
        found.decode("ascii")

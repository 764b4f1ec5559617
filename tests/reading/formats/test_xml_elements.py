"""Elements found in the bytes of XML."""

from cases import every
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from textcat.reading.formats.xml_elements import child_elements, element_at

XML = b"""<n:a x='1>2' n:y="&#233;&amp;"><!-- <no/> --><b><b>in</b></b>text<![CDATA[<no>]]><?p <no> ?><c
 d = "e"/><n:f></n:f
></n:a><behind/>"""


def test_children_are_found_in_their_places():
    found = [*child_elements(XML, 0)]
    assert [XML[one.start : one.end] for one in found] == [b"<b><b>in</b></b>", b'<c\n d = "e"/>', b"<n:f></n:f\n>"]
    assert [one.name for one in found] == ["b", "c", "f"]
    assert [one.prefix for one in found] == [b"", b"", b"n:"]
    assert [XML[one.content : one.end] for one in found] == [b"<b>in</b></b>", b"", b"</n:f\n>"]
    assert found[1].attributes == {"d": "e"}


def test_an_element_is_known_by_its_start():
    found = element_at(XML, 0)
    assert (found.name, found.prefix, found.end) == ("a", b"n:", -1)
    assert found.attributes == {"x": "1>2", "n:y": "é&"}
    assert element_at(b"<a />", 0).end == 5


@every("data", [b"<a/><b/>", b"<a></a><b/>", b"<a>text</a>"])
def test_an_element_may_have_no_children(data):
    assert not [*child_elements(data, 0)]


names = st.sampled_from(["a", "b-c", "d.e"])
texts = st.sampled_from(["", "t", "<!--<x>-->", "<![CDATA[</a>]]>", "<?p </a>?>", "&lt;"])
attributes = st.sampled_from(["", ' x="/>"', " y='<'".replace("<", "&lt;"), ' z=">"'])
elements = st.recursive(
    st.builds("<{0}{1}/>".format, names, attributes),
    lambda inner: st.builds(
        lambda name, attribute, parts: f"<{name}{attribute}>{''.join(parts)}</{name}>",
        names,
        attributes,
        st.lists(inner | texts, max_size=4),
    ),
    max_leaves=12,
)


@given(elements)
def test_lxml_finds_the_same_children(text):
    tree = etree.fromstring(text)
    found = [*child_elements(text.encode(), 0)]
    assert [one.name for one in found] == [child.tag for child in tree if isinstance(child.tag, str)]
    for one, child in zip(found, (child for child in tree if isinstance(child.tag, str)), strict=True):
        assert etree.tostring(etree.fromstring(text.encode()[one.start : one.end])) == etree.tostring(
            child, with_tail=False
        )


@every("start", [b"<!--", b"<![CDATA[", b"<?x"])
def test_what_is_not_closed_ends_with_the_data(start):
    assert [*child_elements(b"<item><a/>" + start + b"<b/></item>", 0)] == [*child_elements(b"<item><a/>", 0)]

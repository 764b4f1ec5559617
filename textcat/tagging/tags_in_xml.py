"""Write tags into XML items: as `<subject>` in NewsML-G2, `<classifier>` in NITF, `<category>` in feeds."""

import re
from collections.abc import Callable, Sequence, Set
from html import escape
from itertools import takewhile

from textcat.reading import ElementSpan, child_elements, element_at, is_own
from textcat.tagging.concepts import MOST_SPACE, SPACE, Edit, Tag, space_before

_QCODE = re.compile(r"[^\s:]+:\S+")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Elements that must precede ours in their parent, according to the schemas.
_BEFORE_SUBJECT = frozenset(
    {"icon", "urgency", "contentCreated", "contentModified", "digitalSourceType", "located", "infoSource", "creator"}
    | {"contributor", "audience", "exclAudience", "altId", "rating", "userInteraction", "language", "genre", "keyword"}
)
_OF_NITF = ("head", "docdata", "identified-content")  # each element is inside the previous one
_BEFORE_IN_NITF: dict[str, Set[str]] = {"head": frozenset(), "docdata": frozenset({"title", "meta", "tobject", "iim"})}


def edits_of_newsml_g2(data: bytes, tags: Sequence[Tag], creator: str) -> list[Edit]:
    """Return the edits that write the tags into a `<newsItem>` as subjects, and remove those of earlier runs."""
    item, about, meta = element_at(data, 0), None, None
    for child in child_elements(data, 0):
        about = child if child.name == "itemMeta" else about
        meta = child if child.name == "contentMeta" else None
        if meta is not None or child.name == "contentSet":
            break
    if meta is None:
        return _nested_insertion(
            data, item, about, [item.prefix + b"contentMeta"], _subjects(tags, creator, item.prefix)
        )
    children = [*child_elements(data, meta.start)]
    earlier = [child for child in children if child.name == "subject" and is_own(child.attributes.get("creator", ""))]
    before = _last(children, {"subject"}) or _last(children, _BEFORE_SUBJECT)
    return _replacement_edits(data, meta, earlier, before, _subjects(tags, creator, meta.prefix))


def edits_of_nitf(data: bytes, tags: Sequence[Tag], creator: str) -> list[Edit]:
    """Return the edits that write the tags into a `<nitf>` as classifiers, and remove those of earlier runs."""
    above = element_at(data, 0)
    elements = _classifiers(tags, creator, above.prefix)
    for depth, name in enumerate(_OF_NITF):
        children = [*takewhile(lambda child: child.name != "body", child_elements(data, above.start))]
        element = next((child for child in children if child.name == name), None)
        if element is None:
            before = _last(children, _BEFORE_IN_NITF.get(name, {child.name for child in children}))
            return _nested_insertion(
                data, above, before, [above.prefix + tag.encode() for tag in _OF_NITF[depth:]], elements
            )
        above = element
    children = [*child_elements(data, above.start)]
    earlier = [child for child in children if child.name == "classifier" and is_own(child.attributes.get("class", ""))]
    before = _last(children, {"classifier"}) or _last(children, {child.name for child in children})
    return _replacement_edits(data, above, earlier, before, elements)


def edits_of_rss(data: bytes, tags: Sequence[Tag], creator: str) -> list[Edit]:
    """Return the edits that write the tags into an `<item>` of RSS 2.0 as categories, and remove those of earlier runs.

    `creator`, any text, becomes the attribute ``domain`` of each category.
    """
    return _edits_of_feed(data, "domain", [({"domain": creator}, _escaped(tag.concept.topic)) for tag in tags])


def edits_of_atom(data: bytes, tags: Sequence[Tag], creator: str) -> list[Edit]:
    """Return the edits that write the tags into an Atom `<entry>` as categories, and remove those of earlier runs.

    `creator`, a URI, becomes the attribute ``scheme`` of each category.
    """
    made = []
    for concept in (tag.concept for tag in tags):
        label = {"label": concept.name} if concept.name else {}
        made.append(({"scheme": creator, "term": concept.topic, **label}, b""))
    return _edits_of_feed(data, "scheme", made)


def _edits_of_feed(data: bytes, of_creator: str, made: Sequence[tuple[dict[str, str], bytes]]) -> list[Edit]:
    item, children = element_at(data, 0), [*child_elements(data, 0)]
    categories = [child for child in children if (child.prefix, child.name) == (item.prefix, "category")]
    earlier = [category for category in categories if is_own(category.attributes.get(of_creator, ""))]
    before = next(reversed(categories or children), None)
    return _replacement_edits(
        data, item, earlier, before, [_element(item.prefix + b"category", *parts) for parts in made]
    )


def _last(elements: Sequence[ElementSpan], names: Set[str]) -> ElementSpan | None:
    return next((element for element in reversed(elements) if element.name in names), None)


# --- the elements to write -------------------------------------------------------------------------------------------


def _subjects(tags: Sequence[Tag], creator: str, prefix: bytes) -> list[bytes]:
    return [_subject(tag, creator, prefix) for tag in tags]


def _subject(tag: Tag, creator: str, prefix: bytes) -> bytes:
    concept = tag.concept
    if concept.scheme.endswith(("/", "#", ":")) and " " not in concept.code:
        named = {"uri": concept.scheme + concept.code}
    elif concept.scheme and _QCODE.fullmatch(concept.topic):
        named = {"qcode": concept.topic}
    else:
        named = {"literal": concept.topic}
    numbers = {"confidence": tag.confidence, "relevance": tag.relevance}
    written = {name: str(number) for name, number in numbers.items() if number is not None}
    name = _element(prefix + b"name", {}, _escaped(concept.name)) if concept.name else b""
    return _element(prefix + b"subject", {**named, **written, "how": "howextr:tool", "creator": creator}, name)


def _classifiers(tags: Sequence[Tag], creator: str, prefix: bytes) -> list[bytes]:
    made = []
    for concept in (tag.concept for tag in tags):
        typed = {"type": concept.scheme} if concept.scheme else {}
        text = _escaped(concept.name or ("" if concept.scheme else concept.code))
        made.append(_element(prefix + b"classifier", {"class": creator, **typed, "value": concept.code}, text))
    return made


def _element(name: bytes, attributes: dict[str, str], content: bytes) -> bytes:
    written = b"".join(b' %s="%s"' % (key.encode(), _escaped(value)) for key, value in attributes.items())
    return b"<%s%s%s" % (name, written, b">%s</%s>" % (content, name) if content else b"/>")


def _escaped(text: str) -> bytes:
    """Return a text escaped for XML in any encoding that includes ASCII."""
    return escape(_NO_XML.sub("\ufffd", text)).encode("ascii", "xmlcharrefreplace")


# --- the positions to write them -------------------------------------------------------------------------------------


def _replacement_edits(
    data: bytes, parent: ElementSpan, own: Sequence[ElementSpan], before: ElementSpan | None, elements: Sequence[bytes]
) -> list[Edit]:
    """Return the edits that replace the elements `own`, of earlier runs; without any, insert after `before`.

    Each element is preceded by the same white space as its neighbours.
    """
    if not own:
        return _insertion(data, parent, before, elements) if elements else []
    spaces = [space_before(data, element.start) for element in own]
    new = b"".join(spaces[0] + element for element in elements)
    edits = [Edit(element.start - len(space), element.end, b"") for element, space in zip(own, spaces, strict=True)]
    return [edits[0]._replace(data=new), *edits[1:]]


def _insertion(data: bytes, parent: ElementSpan, before: ElementSpan | None, elements: Sequence[bytes]) -> list[Edit]:
    """Return the edit that inserts elements after `before` or, if it is None, at the start of their parent."""
    if before is None and parent.content == parent.end:  # an empty-element tag, without an end tag
        tag = parent.prefix + parent.name.encode()
        return [Edit(parent.end - 2, parent.end, b">%s</%s>" % (b"".join(elements), tag))]
    place, space = before.end if before else parent.content, _space_at(data, parent, before)
    return [Edit(place, place, b"".join(space + element for element in elements))]


def _nested_insertion(
    data: bytes,
    parent: ElementSpan,
    before: ElementSpan | None,
    missing: Sequence[bytes],
    elements: Sequence[bytes],
) -> list[Edit]:
    """Return the edit that inserts elements into a parent, inside new enclosing elements with the tags `missing`."""
    if not elements:
        return []
    near = _space_at(data, parent, before)
    step = b" " if b"\n" in near else b""
    spaces = [near + step * depth for depth in range(len(missing) + 1)]
    inner = b"".join(spaces[-1] + element for element in elements)
    for depth, tag in reversed([*enumerate(missing)]):
        inner = b"%s<%s>%s%s</%s>" % (spaces[depth] if depth else b"", tag, inner, spaces[depth], tag)
    return _insertion(data, parent, before, [inner])


def _space_at(data: bytes, parent: ElementSpan, before: ElementSpan | None) -> bytes:
    """Return the white space before `before` or, if it is None, at the start of the parent."""
    if before is not None:
        return space_before(data, before.start)
    rest = data[parent.content : parent.content + MOST_SPACE]
    return rest[: len(rest) - len(rest.lstrip(SPACE))]


EDITS_OF: dict[str, Callable[[bytes, Sequence[Tag], str], list[Edit]]] = {
    "newsml-g2": edits_of_newsml_g2,
    "nitf": edits_of_nitf,
    "rss": edits_of_rss,
    "atom": edits_of_atom,
}

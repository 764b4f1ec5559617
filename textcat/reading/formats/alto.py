"""Read ALTO 1 to 4: the words of a scanned page with their positions; a file is a document.

A word that is divided at the end of a line is joined. Pictures have no words.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from textcat.base.surrogates import mark_surrogates
from textcat.reading.columns import titled_zones
from textcat.reading.faults import UnreadableError
from textcat.reading.formats.documents import clean, tidy_lines, whole_file
from textcat.reading.formats.news import left_out
from textcat.reading.formats.xml_items import attribute, parse_file
from textcat.reading.input_settings import InputSettings
from textcat.reading.records import Block, Record, RecordFormat, RecordSpan, by_record

_PARTS = {"HypPart1": 1, "HypPart2": 2}
_HYPHENS = "-\xad\u00ac\u2010\u2e17"
_READ = ("{*}TextBlock", "{*}TextLine", "{*}String", "{*}SP", "{*}HYP")


class Word(NamedTuple):
    """A word on a page, or one part of a word divided between two lines."""

    text: str
    gap: str  # white space before it: "" or " " on a line, " " at the start of a line, "\n" at the start of a block
    part: int  # 1 or 2: the first or second part of a divided word; otherwise 0
    whole: str  # the whole divided word, as given in the file; otherwise ""
    is_hyphenated: bool  # whether a hyphen follows at the end of its line
    confidence: float | None
    language: str


_Block: TypeAlias = "tuple[Any, list[tuple[Any, Word]]]"  # the element of a block, and its words with their elements


class AltoPage(NamedTuple):
    """The words of a page in reading order, and the positions of the words of some elements."""

    words: list[Word]
    #: By ID of an element: the range of its words, in the order of the file.
    spans: dict[str, list[tuple[int, int]]]
    places: Sequence[int]  # for each word in the order of the file, its position in reading order

    def between(self, begin: str, end: str) -> list[Word] | None:
        """Return the words from one element to another, given by their IDs; None if the page has no such element.

        If `end` is "", or the ID of an element before `begin`, return only the words of `begin`; if `begin` is "", too,
        return all words of the page.
        """
        if not begin:
            return self.words
        if begin not in self.spans:
            return None
        places = self._places(begin)
        last = self._places(end) if places and end != begin and end in self.spans else []
        if last and last[-1] >= places[0]:
            return self.words[places[0] : last[-1] + 1]
        return [self.words[place] for place in places]

    def _places(self, name: str) -> list[int]:
        return sorted(place for first, stop in self.spans[name] for place in self.places[first:stop])


def read_page(data: bytes, settings: InputSettings, wanted: Collection[str] = ()) -> AltoPage:
    """Parse an ALTO file; `wanted` has the IDs of elements for which the page is to keep the positions of their words.

    UnreadableError is raised if the file is not ALTO, or not well-formed.
    """
    root, _ = parse_file(data, settings)
    if root.tag.rpartition("}")[2] != "alto":
        raise UnreadableError(f"is no ALTO, as its root is <{root.tag.rpartition('}')[2]:.40}>: check the file")
    words: list[Word] = []
    places: list[int] = []
    for first, (_, group) in _in_reading_order(root, _blocks(root)):
        if wanted:
            places += [0] * (first + len(group) - len(places))
            places[first : first + len(group)] = range(len(words), len(words) + len(group))
        words += [word for _, word in group]
    return AltoPage(words, _spans(root, wanted) if wanted else {}, places)


def _spans(root: Any, wanted: Collection[str]) -> dict[str, list[tuple[int, int]]]:
    """Return `AltoPage.spans` of the elements whose IDs are `wanted`; each ID is looked up once."""
    from lxml import etree

    spans: dict[str, list[tuple[int, int]]] = {}
    starts, n_words, word = list[int](), 0, root.tag.removesuffix("alto") + "String"
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            starts.append(n_words)
            n_words += element.tag == word
        else:
            start = starts.pop()
            if (name := element.get("ID")) in wanted:
                places = spans.setdefault(name, [])
                while places and places[-1][0] >= start:  # a nested element with the same ID
                    places.pop()
                if start < n_words:
                    places.append((start, n_words))
    return spans


def _blocks(root: Any) -> Iterator[_Block]:
    """Yield the blocks of a page, each with its words and their elements, in the order of the file."""
    between = "" if next(root.iter("{*}SP"), None) is not None else " "  # many files have no SP elements
    block, words, gap, default = None, list[tuple[Any, Word]](), "\n", _page_language(root)
    of_block = of_line = default
    for element in root.iter(*_READ):
        kind = element.tag.rpartition("}")[2]
        if kind == "String":
            words.append((element, _word(element, gap, of_line)))
            gap = between
        elif kind == "SP":
            gap = gap or " "
        elif kind == "TextLine":
            gap, of_line = gap if gap == "\n" else " ", _language(element) or of_block
        elif kind == "HYP":
            if words:
                words[-1] = words[-1][0], words[-1][1]._replace(is_hyphenated=True)
        else:
            if words:
                yield block, words
            block, words, gap = element, [], "\n"
            of_block = of_line = _language(element) or default
    if words:
        yield block, words


def _word(element: Any, gap: str, language: str) -> Word:
    get = element.get  # a page has thousands of words
    part = _PARTS.get(get("SUBS_TYPE"), 0)
    whole = get("SUBS_CONTENT", "").strip() if part else ""
    language = get("LANG") or get("language") or language
    return Word(get("CONTENT", ""), gap, part, whole, False, _confidence(get("WC")), language)


def _confidence(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _language(element: Any) -> str:
    return attribute(element, "LANG", "language")


def _page_language(root: Any) -> str:
    return next(filter(None, map(_language, root.iter("{*}Page"))), "")


def _in_reading_order(root: Any, blocks: Iterable[_Block]) -> Iterable[tuple[int, _Block]]:
    """Sort blocks by the reading order in the file; return each with the number of its first word in file order.

    Blocks outside of the reading order come last.
    """
    numbered, n_words = list[tuple[int, _Block]](), 0
    for block in blocks:
        numbered.append((n_words, block))
        n_words += len(block[1])
    rank: dict[str, int] = {}
    for order in root.iterchildren("{*}ReadingOrder"):
        for reference in order.iter("{*}ElementRef", "{*}UnorderedGroup", "{*}OrderedGroup"):
            for name in reference.get("REF", "").split():
                rank.setdefault(name, len(rank))
    if not rank:
        return numbered
    last, around = len(rank), dict[Any, int]()  # the first rank of an element and its ancestors

    def of_block(block: Any) -> int:
        inner = list[Any]()
        while block is not None and block not in around:
            inner.append(block)
            block = block.getparent()
        first = last if block is None else around[block]
        for element in reversed(inner):
            first = around[element] = min(first, rank.get(element.get("ID"), last))
        return first

    def place(pair: tuple[int, _Block]) -> int:
        block, words = pair[1]
        lines = dict.fromkeys(element.getparent() for element, _ in words)
        return min(of_block(block), *(rank.get(line.get("ID"), last) for line in lines if line is not None))

    return sorted(numbered, key=place)


# --- texts and properties of several words ---------------------------------------------------------------------------


def text_of(words: Sequence[Word]) -> str:
    """Join words to a text, with a line for each block of the page; divided words are joined, too."""
    pieces: list[str] = []
    awaited = ""  # the divided word that was written last; its second part is skipped
    for before, word in pairwise((None, *words)):
        assert word is not None
        gap, text = word.gap, word.text
        is_rest = before is not None and before.is_hyphenated and not (before.part == 1 and before.whole)
        if word.part == 2 and awaited and word.whole in ("", awaited):
            awaited = ""
            continue
        if word.part == 2 and before is not None and before.part == 1 and not before.whole:
            gap = ""
        elif word.part == 2 or (word.part == 1 and word.whole):
            text = word.whole or text
            awaited = word.whole if word.part == 1 else awaited
        elif is_rest and gap == " ":
            gap = ""
        if not gap and before is not None and (before.is_hyphenated or before.part == 1) and pieces:
            pieces[-1] = pieces[-1].rstrip(_HYPHENS) or pieces[-1]
        pieces += gap, text
    return tidy_lines(clean("".join(pieces)))


def mean_confidence(words: Iterable[Word]) -> float | None:
    """Return the mean of the confidences of words, from 0 to 1, to four digits; None if no word has one."""
    values = [word.confidence for word in words if word.confidence is not None]
    return round(sum(values) / len(values), 4) if values else None


def main_language(words: Iterable[Word]) -> str:
    """Return the language of most of the words; of equally frequent ones, the first; "" if no word has a language."""
    counts = Counter(word.language for word in words if word.language)
    return mark_surrogates(max(counts, key=counts.__getitem__)) if counts else ""


def _content(block: Block, settings: InputSettings, span: RecordSpan) -> Record:
    words = read_page(span.data, settings).words
    text, language = text_of(words), main_language(words)
    if not text:
        raise left_out("has no words")
    fields = settings.kept({"language": language, "word_confidence": mean_confidence(words)})
    zones = titled_zones("", [text], settings)
    return Record(block.source, zones, fields=fields, language=language)


FORMAT = RecordFormat(whole_file, by_record(_content))

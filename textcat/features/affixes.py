"""Turn the affix regexes of a spaCy tokenizer into lookup tables, which decide most strings without running a regex.

spaCy runs three regexes on every span of text between white space, for prefixes, suffixes and infixes; this takes
nearly all of its time. This module parses each regex once, and represents every alternative as sets of characters
around a point: the start of the string for prefixes, its end for suffixes, the start of the match for infixes. An
alternative cannot match if a character around the point is not in its set. If the alternative consists of such sets
alone, it matches if and only if each character is in its set; the width of the match is then known, and no regex is
needed. All other cases are left to the regex itself.

A set is a bit mask: one bit per ASCII character, one for all other characters together, one for "no character here". A
mask over an alphabet is slower to compute; it has a bit for each class of non-ASCII characters that the regexes
distinguish.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from itertools import chain
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from textcat.features._token_cache import REACHED, Codes

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer

OTHER = 1 << 128
ABSENT = 1 << 129
ASCII = OTHER - 1
FIRST, _FIRST_CLASS = 128, 130  # the first non-ASCII character, and the code of the first class of non-ASCII characters
ANY_CHARACTER = -1  # all bits, however many there are
DEPTH = 4  # number of characters examined on either side of a point, without an alphabet
MAX_ALTERNATIVES = 4096

_Node = tuple[Any, Any]
_Masks = tuple[int, ...]
_Members = tuple[tuple[str, Any], ...]
Alternatives: TypeAlias = "Sequence[Alternative] | None"  # None: the regex must always be run
Affixes: TypeAlias = "tuple[Alternatives, Alternatives, Alternatives]"  # alternatives of prefixes, suffixes and infixes
_Role = Literal["prefix", "suffix", "infix"]
Regexes: TypeAlias = "Mapping[str, Sequence[Any]]"  # pattern and flags by the name of a tokenizer's callable
TOKENIZER_METHODS = {
    "prefix_search": "search",
    "suffix_search": "search",
    "infix_finditer": "finditer",
    "url_match": "match",
    "token_match": "match",
}
_GROUPS = ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP", "MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_LOOKS = ("ASSERT", "ASSERT_NOT")
_ZERO_WIDTH = (*_LOOKS, "AT")
_CHARACTERS = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
# The part before a host in spaCy's regex of URLs, and an equivalent that does not try each colon with each "@".
_USER = r"(?:\S+(?::\S*)?@)?", r"(?:\S+@)?"
_SET = "SET"  # our node type: a set as bits of an alphabet


class Alternative(NamedTuple):
    """An alternative of a regex, as the sets of characters that may stand around its point.

    The point is the start of the string for a prefix, its end for a suffix, the start of the match for an infix.
    """

    before: _Masks  # the sets of the characters before the point, nearest first
    ahead: _Masks  # the sets of the characters after the point, nearest first
    width: int  # number of characters that the alternative matches; -1 if only the regex can tell
    repeats: bool = False  # True: it matches the longest run of at least `width` characters of one set


class UnmodelledRegexError(Exception):
    """Raised for a regex that tables of character sets cannot express, so that the regex must always be run."""


def alternatives_of(pattern: re.Pattern[str], role: _Role) -> list[Alternative]:
    """Return the alternatives of a regex, in the order in which the regex tries them.

    UnmodelledRegexError is raised if tables of character sets cannot express the regex, or if an alternative of a
    prefix does not start with `^`, or one of a suffix does not end with `$`, as spaCy's do.
    """
    return [_in_ascii(alternative) for alternative in _alternatives(parse_regex(pattern), role, DEPTH)]


def _alternatives(nodes: Sequence[_Node], role: _Role, depth: int) -> list[Alternative]:
    paths = _paths(nodes)
    if role == "prefix" and not all(path and _is_at(path[0], "BEGINNING") for path in paths):
        raise UnmodelledRegexError("an alternative without ^")
    if role == "suffix" and not all(path and _is_at(path[-1], "END") for path in paths):
        raise UnmodelledRegexError("an alternative without $")
    return [_alternative(path, role, depth) for path in paths]


def tokenizer_regexes(tokenizer: Tokenizer) -> Regexes | None:
    """Return the pattern and flags of each regex of a spaCy tokenizer, by the names in `TOKENIZER_METHODS`.

    These are names of the tokenizer's attributes. Return None if the value of one is not the method of a regex.
    """
    regexes = {}
    for name, method in TOKENIZER_METHODS.items():
        function = getattr(tokenizer, name)
        pattern = getattr(function, "__self__", None)
        if isinstance(pattern, re.Pattern) and getattr(function, "__name__", None) == method:
            regexes[name] = pattern.pattern, pattern.flags
        elif function is not None:
            return None
    return regexes


def read_affixes(regexes: Regexes) -> Affixes:
    """Return the alternatives of the regexes of prefixes, suffixes and infixes, in this order.

    For each, the list is empty if there is no such regex, and None if tables of character sets cannot express it.
    """

    def read(name: str, role: _Role) -> Alternatives:
        try:
            return alternatives_of(re.compile(*regexes[name]), role) if name in regexes else []
        except UnmodelledRegexError:
            return None

    return read("prefix_search", "prefix"), read("suffix_search", "suffix"), read("infix_finditer", "infix")


def read_exact_affixes(regexes: Regexes) -> tuple[Affixes, Codes] | None:
    """Return the alternatives of prefixes, suffixes and infixes over an alphabet, and the codes of the alphabet.

    An alphabet has a code for each class of characters that the regexes tell apart. By these alternatives, compiled
    code finds the affixes of nearly all strings; spaCy's regexes find those of the others. Return None if
    tables cannot express a regex.
    """
    return _exact_affixes(*(tuple(regexes.get(name, ())) for name in list(TOKENIZER_METHODS)[:3]))


@lru_cache(maxsize=4)  # not at import, because reading them takes 30 ms
def _exact_affixes(*regexes: tuple[Any, ...]) -> tuple[Affixes, Codes] | None:
    roles: tuple[_Role, ...] = get_args(_Role)
    try:
        trees = [parse_regex(re.compile(*regex)) if regex else [] for regex in regexes]
        alphabet = _Alphabet([node for tree in trees for node in tree])
        prefixes, suffixes, infixes = (
            _alternatives(alphabet.translate(tree), role, REACHED) if tree else []
            for tree, role in zip(trees, roles, strict=True)
        )
    except UnmodelledRegexError:
        return None
    return (prefixes, suffixes, infixes), alphabet.codes


class _Alphabet:
    """Divide the characters that are not ASCII into classes, and give each class a code.

    Two characters are in the same class if every set of characters in the regexes has both of them or neither.
    """

    def __init__(self, nodes: Sequence[_Node]):
        self._sets = dict.fromkeys(_sets_within(nodes), 0)
        ranges = {members: [_range(op, value) for op, value in members if op != "NEGATE"] for members in self._sets}
        edges = {edge for listed in ranges.values() for edge in chain(*listed) if edge > FIRST}
        self._edges = np.array([FIRST, *sorted(edges)])  # starts of ranges of characters that no set distinguishes
        has = np.zeros((len(self._sets), len(self._edges)), bool)
        for row, (members, listed) in zip(has, ranges.items(), strict=True):
            for first, behind in np.searchsorted(self._edges, listed).tolist():
                row[first:behind] = True
            row ^= members[0][0] == "NEGATE"
        columns = [column.tobytes() for column in np.packbits(has, axis=0).T]
        class_of = {column: code for code, column in enumerate(dict.fromkeys(columns), _FIRST_CLASS)}
        self._codes = np.array([class_of[column] for column in columns], np.uint16)  # class of each range
        self.codes = Codes(_FIRST_CLASS + len(class_of), self._page)
        for row, members in zip(has, self._sets, strict=True):
            mask = ASCII & (_mask(("IN", members)) or 0)
            self._sets[members] = reduce(or_, [1 << code for code in set(self._codes[row].tolist())], mask)

    def _page(self, number: int) -> np.ndarray:
        """Return the codes of 256 characters of Unicode, a page; page 0 has the first 256 characters, and so on."""
        characters = np.arange(256 * number, 256 * number + 256)
        stretches = np.searchsorted(self._edges, characters, side="right") - 1
        return np.where(characters < FIRST, characters, self._codes[stretches]).astype(np.uint16)

    def translate(self, nodes: Sequence[_Node]) -> list[_Node]:
        """Return the parse tree of a regex in which each set of characters is replaced by a bit mask over the codes."""
        return [self._translate(*node) for node in nodes]

    def _translate(self, op: Any, argument: Any) -> _Node:
        name = str(op)
        if name in _CHARACTERS:
            return _SET, self._sets[_members_of(name, argument)]
        if name == "BRANCH":
            return op, (argument[0], [self.translate(branch) for branch in argument[1]])
        if name == "ATOMIC_GROUP":
            return op, self.translate(argument)
        if name in (*_GROUPS, *_LOOKS):
            return op, (*argument[:-1], self.translate(argument[-1]))
        return op, argument


def _sets_within(nodes: Iterable[_Node]) -> Iterator[_Members]:
    """Yield each set of characters in the parse tree of a regex, as the tuple of its members."""
    for op, argument in nodes:
        name = str(op)
        if name in _CHARACTERS:
            yield _members_of(name, argument)
        elif name in (*_GROUPS, *_LOOKS):
            for part in argument[1] if name == "BRANCH" else [argument if name == "ATOMIC_GROUP" else argument[-1]]:
                yield from _sets_within(part)


def _members_of(name: str, argument: Any) -> _Members:
    if name == "IN":
        return tuple((str(op), value) for op, value in argument)
    code = ("LITERAL", ord("\n") if name == "ANY" else argument)
    return (code,) if name == "LITERAL" else (("NEGATE", None), code)


def _range(op: str, value: Any) -> tuple[int, int]:
    """Return the range of characters that a member of a set covers: the first one, and the one after the last."""
    if op not in ("LITERAL", "RANGE"):
        raise UnmodelledRegexError(op)
    low, high = (value, value) if op == "LITERAL" else value
    return low, high + 1


def read_url(regexes: Regexes) -> tuple[int, ...]:
    """Return sets of characters (bit masks): a match of `url_match` has a character of every set; () if unknown."""
    with suppress(KeyError, UnmodelledRegexError):
        return tuple(required_characters(parse_regex(re.compile(*regexes["url_match"]))))
    return ()


def regex_function(regexes: Regexes, name: str) -> Callable[[str], Any] | None:
    """Return the method of a regex that can replace the callable `name` of a tokenizer.

    `regexes` has the pattern and flags of each regex. Return None if it has no regex of this name; raise ValueError if
    the regex is not valid.
    """
    if name not in regexes:
        return None
    pattern, flags = regexes[name]
    if name == "url_match":  # only whether it matches is needed
        pattern = pattern.replace(*_USER)
    try:
        return getattr(re.compile(pattern, flags), TOKENIZER_METHODS[name])
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def parse_regex(pattern: re.Pattern[str]) -> Sequence[_Node]:
    """Return the parse tree of a regex; raise UnmodelledRegexError if it has flags such as IGNORECASE."""
    if pattern.flags & ~(re.UNICODE | re.VERBOSE):
        raise UnmodelledRegexError(f"flags {pattern.flags}")
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_parse as parser
    return list(parser.parse(pattern.pattern, pattern.flags))


def _paths(nodes: Iterable[_Node]) -> list[list[_Node]]:
    """Return the paths through a regex's parse tree: sequences of nodes, one choice for each branch and optional part.

    The paths are in the order in which the regex tries them. UnmodelledRegexError is raised if there are too many.
    """
    paths: list[list[_Node]] = [[]]
    for op, argument in nodes:
        name = str(op)
        if name == "BRANCH":
            options = [path for branch in argument[1] for path in _paths(branch)]
        elif name == "SUBPATTERN":
            options = _paths(_inside(argument))
        elif name == "MAX_REPEAT" and tuple(argument[:2]) == (0, 1):
            options = [*_paths(argument[2]), []]
        else:
            options = [[(op, argument)]]
        paths = [path + option for path in paths for option in options]
        if len(paths) > MAX_ALTERNATIVES:
            raise UnmodelledRegexError("too many alternatives")
    return paths


def _inside(subpattern: tuple[Any, int, int, Any]) -> list[_Node]:
    _, added_flags, removed_flags, nodes = subpattern
    if added_flags or removed_flags:
        raise UnmodelledRegexError("flags of a group")
    return list(nodes)


def _alternative(path: list[_Node], role: _Role, depth: int) -> Alternative:
    n_leading = next((i for i, (op, _) in enumerate(path) if str(op) not in _ZERO_WIDTH), len(path))
    lookbehinds = [node for node in path[:n_leading] if _is_look(node, -1)]
    before = _masks(path if role == "suffix" else lookbehinds if role == "infix" else [], -1, depth)
    ahead = _masks([] if role == "suffix" else path, 1, depth)
    inner = path[:-1] if role == "suffix" else path[1:] if role == "prefix" else path
    if depth == REACHED and (n_copies := _copies_of_one_set(inner)):
        return Alternative(before, ahead, n_copies, repeats=True)
    return Alternative(before, ahead, _exact_width(inner, depth, behind=role != "prefix", ahead=role != "suffix"))


def _in_ascii(alternative: Alternative) -> Alternative:
    """Return an alternative whose masks have only the bits of ASCII, OTHER and ABSENT, without those of an alphabet.

    A mask is a set of characters. OTHER stands for all characters that are not ASCII, ABSENT for no character. A mask
    that has all of these bits becomes ANY_CHARACTER.
    """
    bits = ASCII | OTHER | ABSENT
    before, ahead = (
        tuple(ANY_CHARACTER if mask & bits == bits else mask & bits for mask in masks) for masks in alternative[:2]
    )
    return alternative._replace(before=before, ahead=ahead)


def _copies_of_one_set(path: list[_Node]) -> int:
    r"""Return the least number of characters that a path matches if it only repeats one set, such as `\.\.+`.

    Return 0 for any other path, or if the number exceeds what the tables can hold.
    """
    if not path or str(path[-1][0]) != "MAX_REPEAT":
        return 0
    fewest, most, nodes = path[-1][1]
    one_set = {_mask(node) for node in (*path[:-1], *nodes)}
    n_copies = len(path) - 1 + int(fewest)
    endless = str(most) == "MAXREPEAT" and len(nodes) == 1
    return n_copies if endless and len(one_set) == 1 and None not in one_set and 0 < n_copies <= REACHED else 0


def _exact_width(path: list[_Node], depth: int, *, behind: bool, ahead: bool) -> int:
    """Return the number of characters that a path matches, or -1 if only the regex can tell whether it matches.

    The number is known if the path (a sequence of parts of a regex) consists of lookbehinds, then characters, then
    lookaheads, and if the characters and the longest lookaround cover at most `depth` characters. Lookbehinds are
    allowed only if `behind` is True, lookaheads only if `ahead` is True.
    """
    start = next((i for i, node in enumerate(path) if not _is_look(node, -1)), len(path))
    stop = next((i for i in range(start, len(path)) if _mask(path[i]) is None), len(path))
    looks = path[:start] + path[stop:]
    if (start and not behind) or (stop < len(path) and not ahead):
        return -1
    if not all(_is_look(node, 1) for node in path[stop:]):
        return -1
    if any(_mask(node) is None for _, (_, inside) in looks for node in inside):
        return -1
    width = stop - start
    return width if width and width + max((len(inside) for _, (_, inside) in looks), default=0) <= depth else -1


def _is_look(node: _Node, direction: int) -> bool:
    """Return whether a node is a lookahead (`direction` 1) or a lookbehind (-1) that the tables can express.

    The tables can express a negative lookaround only if it excludes a single character.
    """
    if str(node[0]) not in _LOOKS or node[1][0] != direction:
        return False
    return str(node[0]) == "ASSERT" or (len(node[1][1]) == 1 and _mask(node[1][1][0]) is not None)


def _is_at(node: _Node, edge: str) -> bool:
    return str(node[0]) == "AT" and str(node[1]) in (f"AT_{edge}", f"AT_{edge}_STRING")


def _masks(path: list[_Node], direction: int, depth: int) -> _Masks:
    """Return the set of characters that a match of a regex allows at each of `depth` positions, nearest first.

    Positions are counted forwards from the start of the match (`direction` 1), or backwards from its end (-1).
    """
    return _walk(path[::direction], depth, direction)


def _walk(nodes: list[_Node], depth: int, direction: int) -> _Masks:
    """Return, for each of the next `depth` positions, the characters that a part of a regex allows, by any path.

    `nodes` are the nodes of the regex's parse tree, listed in the direction in which positions are counted: forwards
    (1) or backwards (-1).
    """
    if depth == 0 or not nodes:
        return (ANY_CHARACTER,) * depth
    (op, argument), rest = nodes[0], nodes[1:]
    mask = _mask((op, argument))
    if mask is not None:
        return (mask, *_walk(rest, depth - 1, direction))
    name = str(op)
    if name in _GROUPS:
        walks = [_walk(way[::direction] + rest, depth, direction) for way in _ways(name, argument, depth)]
        return tuple(_union(masks) for masks in zip(*walks, strict=True))
    further = _walk(rest, depth, direction)
    if _is_look((op, argument), direction):
        looked = _masks(list(argument[1]), direction, depth)
        if name == "ASSERT_NOT":  # there is always another character that is outside, or may be
            looked = (~looked[0] | OTHER, *looked[1:])
        return tuple(a & b for a, b in zip(further, looked, strict=True))
    if name in _ZERO_WIDTH:
        return further
    raise UnmodelledRegexError(name)


def _ways(name: str, argument: Any, depth: int) -> list[list[_Node]]:
    """Return the node sequences to which a group or repetition can expand; repetitions have up to `depth` copies.

    `name` is the type of the node in the parse tree of a regex, and `argument` is the rest of the node.
    """
    if name == "BRANCH":
        return [list(branch) for branch in argument[1]]
    if name == "SUBPATTERN":
        return [_inside(argument)]
    if name == "ATOMIC_GROUP":
        return [list(argument)]
    fewest, most, nodes = int(argument[0]), int(argument[1]), list(argument[2])
    # Copies beyond `depth` are out of sight; an empty one may also be absent.
    return [nodes * copies for copies in range(min(fewest, depth), min(most, depth) + 1)]


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def required_characters(nodes: Iterable[_Node]) -> list[int]:
    """Return sets of characters (bit masks): every string that a regex, given by its nodes, matches has one of each."""
    required: list[int] = []
    for op, argument in nodes:
        name, mask = str(op), _mask((op, argument))
        if mask is not None:
            required.append(mask)
        elif name == "BRANCH":
            branches = [required_characters(branch) for branch in argument[1]]
            if all(branches):
                required.append(_union(min(masks, key=int.bit_count) for masks in branches))
        elif name in _GROUPS:
            fewest = argument[0] if name.endswith("REPEAT") else 1
            required += required_characters(_ways(name, argument, 1)[-1]) if fewest else []
        elif name not in _ZERO_WIDTH:
            raise UnmodelledRegexError(name)
    return required


def _mask(node: _Node) -> int | None:
    """Return the set of characters (a bit mask) of a node of a regex that matches one character; None for others."""
    name, argument = str(node[0]), node[1]
    if name == _SET:
        return int(argument)
    if name in ("LITERAL", "NOT_LITERAL", "ANY"):
        code = ord("\n") if name == "ANY" else argument
        mask = _members("RANGE", (code, code))
        return mask if name == "LITERAL" else _complement(mask)
    if name == "IN":
        members = [(str(op), value) for op, value in argument]
        mask = _union(_members(op, value) for op, value in members if op != "NEGATE")
        return _complement(mask) if members[0][0] == "NEGATE" else mask
    return None


def _complement(mask: int) -> int:
    return OTHER | (ASCII & ~mask)  # there is always a non-ASCII character that is outside, or may be


def _members(op: str, value: Any) -> int:
    if op in ("LITERAL", "RANGE"):
        low, high = (value, value) if op == "LITERAL" else value
        return _union(1 << code for code in range(low, min(high, 127) + 1)) | (OTHER if high > 127 else 0)
    if op == "CATEGORY":
        return _category(str(value))
    raise UnmodelledRegexError(op)


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda character: character.isalnum() or character == "_",
}


def _category(name: str) -> int:
    kind = name.removeprefix("CATEGORY_").removeprefix("NOT_")
    if kind not in _CATEGORIES:
        raise UnmodelledRegexError(name)
    mask = _union(1 << code for code in range(128) if _CATEGORIES[kind](chr(code)))
    return _complement(mask) if "NOT_" in name else OTHER | mask

"""Turn the affix regexes of a spaCy tokenizer into tables that answer for most strings without running a regex.

spaCy asks three regexes about every span of text between white space: is there a prefix, a suffix, an infix? Nearly all
of its time goes there. Here the parse tree of each regex is read once and every alternative is written down as sets of
characters around a point: the start of the string for prefixes, its end for suffixes, the start of the match for
infixes. An alternative whose sets the string does not meet cannot match. One that consists of such sets alone matches
if and only if they are met, and its width is known, so no regex is needed at all. Whatever cannot be decided that way
is left to the regex itself.

Sets are bit masks: one bit per ASCII character, one for all other characters together, one for "no character here".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from textcat.features._token_cache import DEPTH

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer

OTHER = 1 << 128
ABSENT = 1 << 129
ASCII = OTHER - 1
ANY_CHARACTER = ABSENT | OTHER | ASCII
MAX_ALTERNATIVES = 4096

_Node = tuple[Any, Any]
_Masks = tuple[int, ...]
Alternatives: TypeAlias = "Sequence[Alternative] | None"  # None: of a regex that must always be run
Affixes: TypeAlias = "tuple[Alternatives, Alternatives, Alternatives]"  # of prefixes, suffixes and infixes
_Role = Literal["prefix", "suffix", "infix"]
Regexes: TypeAlias = "Mapping[str, tuple[str, int]]"  # pattern and flags by the name of a tokenizer's callable
TOKENIZER_METHODS = {
    "prefix_search": "search",
    "suffix_search": "search",
    "infix_finditer": "finditer",
    "url_match": "match",
    "token_match": "match",
}
_GROUPS = ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP", "MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_ZERO_WIDTH = ("ASSERT", "ASSERT_NOT", "AT")


class Alternative(NamedTuple):
    """One way for a regex to match: the sets of characters around its point, nearest first, and its width or -1."""

    before: _Masks
    ahead: _Masks
    width: int


class UnmodelledRegexError(Exception):
    """The regex holds something that the tables do not model, so it must always be run."""


def alternatives_of(pattern: re.Pattern[str], role: _Role) -> list[Alternative]:
    """Return the alternatives of a regex in the order in which it tries them, or raise UnmodelledRegexError.

    As spaCy writes them, every alternative of a prefix starts with `^`, and every one of a suffix ends with `$`.
    """
    paths = _paths(parse_regex(pattern))
    if role == "prefix" and not all(path and _is_at(path[0], "BEGINNING") for path in paths):
        raise UnmodelledRegexError("an alternative without ^")
    if role == "suffix" and not all(path and _is_at(path[-1], "END") for path in paths):
        raise UnmodelledRegexError("an alternative without $")
    return [_alternative(path, role) for path in paths]


def tokenizer_regexes(tokenizer: Tokenizer) -> Regexes | None:
    """Return the regexes by the names of the tokenizer's callables; None if one of these is no method of a regex."""
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
    """Return the alternatives of each affix regex: [] if there is no regex, None if the tables cannot model it."""

    def read(name: str, role: _Role) -> Alternatives:
        try:
            return alternatives_of(re.compile(*regexes[name]), role) if name in regexes else []
        except UnmodelledRegexError:
            return None

    return read("prefix_search", "prefix"), read("suffix_search", "suffix"), read("infix_finditer", "infix")


def read_url(regexes: Regexes) -> tuple[int, ...]:
    """Return sets of characters: a match of `url_match` has at least one of each set. Without such sets, return ()."""
    try:
        return (
            tuple(required_characters(parse_regex(re.compile(*regexes["url_match"])))) if "url_match" in regexes else ()
        )
    except UnmodelledRegexError:
        return ()


def regex_function(regexes: Regexes, name: str) -> Callable[[str], Any] | None:
    """Return the method of the compiled regex that replaces a tokenizer's callable; ValueError if it is no regex."""
    if name not in regexes:
        return None
    try:
        return getattr(re.compile(*regexes[name]), TOKENIZER_METHODS[name])
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def parse_regex(pattern: re.Pattern[str]) -> Sequence[_Node]:
    """Return the parse tree of a regex, or raise UnmodelledRegexError."""
    if pattern.flags & ~(re.UNICODE | re.VERBOSE):
        raise UnmodelledRegexError(f"flags {pattern.flags}")
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_parse as parser
    return list(parser.parse(pattern.pattern, pattern.flags))


def _paths(nodes: Iterable[_Node]) -> list[list[_Node]]:
    """Multiply branches and options out into sequences without either, in the order in which they are tried."""
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


def _alternative(path: list[_Node], role: _Role) -> Alternative:
    if role == "suffix":
        return Alternative(_masks(path, -1), _masks([], 1), _exact_width(path[:-1], behind=True, ahead=False))
    if role == "prefix":
        return Alternative(_masks([], -1), _masks(path, 1), _exact_width(path[1:], behind=False, ahead=True))
    n_leading = next((i for i, (op, _) in enumerate(path) if str(op) not in _ZERO_WIDTH), len(path))
    lookbehinds = [node for node in path[:n_leading] if _is_look(node, -1)]
    return Alternative(_masks(lookbehinds, -1), _masks(path, 1), _exact_width(path, behind=True, ahead=True))


def _exact_width(path: list[_Node], *, behind: bool, ahead: bool) -> int:
    """Return the width of a path of lookbehinds, characters and lookaheads, in that order and in reach; else -1."""
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
    return width if width and width + max((len(inside) for _, (_, inside) in looks), default=0) <= DEPTH else -1


def _is_look(node: _Node, direction: int) -> bool:
    return str(node[0]) == "ASSERT" and node[1][0] == direction


def _is_at(node: _Node, edge: str) -> bool:
    return str(node[0]) == "AT" and str(node[1]) in (f"AT_{edge}", f"AT_{edge}_STRING")


def _masks(path: list[_Node], direction: int, depth: int = DEPTH) -> _Masks:
    """Return the sets that the characters next to the start (1) or end (-1) of a match must be in, nearest first."""
    return _walk(path[::direction], depth, direction)


def _walk(nodes: list[_Node], depth: int, direction: int) -> _Masks:
    """Return the sets of characters met by any way through the nodes, which are listed in the direction of travel."""
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
        return tuple(a & b for a, b in zip(further, looked, strict=True))
    if name in _ZERO_WIDTH:
        return further
    raise UnmodelledRegexError(name)


def _ways(name: str, argument: Any, depth: int) -> list[list[_Node]]:
    """Return the ways through a node that differ within the next `depth` characters."""
    if name == "BRANCH":
        return [list(branch) for branch in argument[1]]
    if name == "SUBPATTERN":
        return [_inside(argument)]
    if name == "ATOMIC_GROUP":
        return [list(argument)]
    fewest, most, nodes = int(argument[0]), int(argument[1]), list(argument[2])
    # Of more than `depth` copies, those beyond are out of sight, or empty and so as good as absent.
    return [nodes * copies for copies in range(min(fewest, depth), min(most, depth) + 1)]


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def required_characters(nodes: Iterable[_Node]) -> list[int]:
    """Return sets of characters: any string that the nodes match has at least one character of each set."""
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
    """Return the set of characters of a node that matches exactly one character; None for every other node."""
    name, argument = str(node[0]), node[1]
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
    return OTHER | (ASCII & ~mask)  # some non-ASCII character is always outside of a set, or may be


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

"""Turn the affix regexes of a spaCy tokenizer into tables that answer for most strings without running a regex.

spaCy asks three regexes about every chunk: is there a prefix, a suffix, an infix? Nearly all of its time goes there.
Here the parse tree of each regex is read once and every alternative is written down as sets of characters around a
point: the start of the string for prefixes, its end for suffixes, the start of the match for infixes. An alternative
whose sets the string does not meet cannot match. One that is nothing but such sets (`exact`) matches if and only if
they are met, and its width is known, so no regex is needed at all. Whatever cannot be decided that way is left to the
regex itself.

Sets are bit masks: one bit per ASCII character, one for all other characters together, one for "no character here".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from textcat.features._affixes import DEPTH, Infixes, Prefixes, Suffixes, cut
from textcat.features._token_cache import Words

if TYPE_CHECKING:
    from spacy.tokenizer import Tokenizer
    from spacy.vocab import Vocab

OTHER = 1 << 128
ABSENT = 1 << 129
ASCII = OTHER - 1
ANYTHING = ABSENT | OTHER | ASCII
MAX_ALTERNATIVES = 4096

Node = tuple[Any, Any]
View = tuple[int, ...]
Role = Literal["prefix", "suffix", "infix"]


class Alternative(NamedTuple):
    """One way for a regex to match: the sets of characters around its point, nearest first, and its width or -1."""

    before: View
    ahead: View
    width: int


class UnreadableError(Exception):
    """The regex holds something that this module does not model, so it must always be run."""


def alternatives(pattern: re.Pattern[str], role: Role) -> list[Alternative]:
    """List the alternatives of a regex in the order in which it tries them.

    Parameters
    ----------
    pattern : re.Pattern
        Prefix patterns start with `^` and suffix patterns end with `$` in every alternative, as spaCy writes them.
    role : {"prefix", "suffix", "infix"}
        Where the point is that the sets of characters surround: start of string, end of string, start of match.

    Raises
    ------
    UnreadableError
        If the pattern has flags, nodes, or a lack of anchors that do not fit the model.
    """
    if pattern.flags & ~(re.UNICODE | re.VERBOSE):
        raise UnreadableError(f"flags {pattern.flags}")
    paths = _paths(_parse(pattern))
    if role == "prefix" and not all(path and _is_start(path[0]) for path in paths):
        raise UnreadableError("an alternative without ^")
    if role == "suffix" and not all(path and _is_end(path[-1]) for path in paths):
        raise UnreadableError("an alternative without $")
    return [_alternative(path, role) for path in paths]


def required(pattern: re.Pattern[str]) -> list[int]:
    """Give sets of characters of each of which any string that the pattern matches holds at least one."""
    if pattern.flags & ~(re.UNICODE | re.VERBOSE):
        raise UnreadableError(f"flags {pattern.flags}")
    return _required(_parse(pattern))


def guarded(tokenizer: Tokenizer, affixes: Affixes, vocab: Vocab, rules: dict[str, Any] | None = None) -> Tokenizer:
    """Rebuild a tokenizer around tables, with the same tokens as before.

    Parameters
    ----------
    tokenizer : spacy.tokenizer.Tokenizer
        Left as it is.
    affixes : Affixes
        Those of `tokenizer`.
    vocab : spacy.vocab.Vocab
        The new tokenizer's vocabulary.
    rules : dict, optional
        Its special cases; by default those of `tokenizer`.
    """
    return type(tokenizer)(
        vocab,
        rules=tokenizer.rules if rules is None else rules,
        prefix_search=affixes.prefixes,
        suffix_search=affixes.suffixes,
        infix_finditer=affixes.infixes,
        token_match=affixes.token_match,
        url_match=affixes.url_match,
        faster_heuristics=tokenizer.faster_heuristics,
    )


class Affixes(NamedTuple):
    """The callables of a tokenizer, each behind its tables."""

    prefixes: Prefixes
    suffixes: Suffixes
    infixes: Infixes
    url_match: Callable[[str], Any] | None
    token_match: Callable[[str], Any] | None

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Affixes:
        """Read the regexes of a tokenizer."""
        return cls(
            Prefixes(tokenizer.prefix_search, _readable(tokenizer.prefix_search, "search", "prefix")),
            Suffixes(tokenizer.suffix_search, _readable(tokenizer.suffix_search, "search", "suffix")),
            Infixes(tokenizer.infix_finditer, _readable(tokenizer.infix_finditer, "finditer", "infix")),
            _url_guard(tokenizer.url_match),
            tokenizer.token_match,
        )

    def words(self, numbers: dict[str, int], other: int, kind: int, specials: set[str]) -> Words:
        """Give what cuts plain chunks without strings; for the parameters see `Words`, and `cut`."""
        whole = self.token_match is not None
        return Words(numbers, other, kind, specials, whole, self.prefixes, self.suffixes, self.infixes)

    def cut(self, chunks: list[str], specials: set[str]) -> tuple[list[str], np.ndarray]:
        """Cut chunks into their tokens where the tables can tell, and no special case is near.

        Parameters
        ----------
        chunks : list of str
        specials : set of str
            The special cases, each also without its white space.

        Returns
        -------
        tokens : list of str
        lengths : ndarray of shape (n_chunks,), int32
            How many tokens each chunk has; 0 where the tables cannot tell.
        """
        return cut(chunks, specials, self.token_match is not None, self.prefixes, self.suffixes, self.infixes)


def _pattern_of(function: Callable[..., Any], method: str) -> re.Pattern[str] | None:
    pattern = getattr(function, "__self__", None)
    named = getattr(function, "__name__", None) == method
    return pattern if named and isinstance(pattern, re.Pattern) else None


def _readable(function: Callable[..., Any] | None, method: str, role: Role) -> list[Alternative] | None:
    """List the alternatives behind a tokenizer's callable, or give None if it must always be asked."""
    if function is None:
        return []
    pattern = _pattern_of(function, method)
    try:
        return None if pattern is None else alternatives(pattern, role)
    except UnreadableError:
        return None


def _url_guard(function: Callable[[str], Any] | None) -> Callable[[str], Any] | None:
    """Spare the URL regex the strings that lack a character it cannot do without, which is the dot."""
    pattern = None if function is None else _pattern_of(function, "match")
    if function is None or pattern is None:
        return function
    try:
        single = [mask for mask in required(pattern) if mask & ASCII == mask and mask & (mask - 1) == 0]
    except UnreadableError:
        return function
    if not single:
        return function
    needed = chr(single[0].bit_length() - 1)
    return lambda string: function(string) if needed in string else None


def _parse(pattern: re.Pattern[str]) -> Sequence[Node]:
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_parse as parser
    return list(parser.parse(pattern.pattern, pattern.flags))


def _paths(nodes: Iterable[Node]) -> list[list[Node]]:
    """Multiply branches and options out into sequences without either, in the order in which they are tried."""
    paths: list[list[Node]] = [[]]
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
            raise UnreadableError("too many alternatives")
    return paths


def _inside(subpattern: tuple[Any, int, int, Any]) -> list[Node]:
    _, added_flags, removed_flags, nodes = subpattern
    if added_flags or removed_flags:
        raise UnreadableError("flags of a group")
    return list(nodes)


def _alternative(path: list[Node], role: Role) -> Alternative:
    unknown = (ANYTHING,) * DEPTH
    if role == "suffix":
        return Alternative(_backward(path, DEPTH), unknown, _exact_width(path[:-1], behind=True, ahead=False))
    if role == "prefix":
        return Alternative(unknown, _forward(path, DEPTH), _exact_width(path[1:], behind=False, ahead=True))
    lookbehinds = [node for node in path[: _n_leading(path)] if _is_look(node, -1)]
    return Alternative(
        _backward(lookbehinds, DEPTH), _forward(path, DEPTH), _exact_width(path, behind=True, ahead=True)
    )


def _n_leading(path: list[Node]) -> int:
    return next((i for i, (op, _) in enumerate(path) if str(op) not in ("ASSERT", "ASSERT_NOT", "AT")), len(path))


def _exact_width(path: list[Node], *, behind: bool, ahead: bool) -> int:
    """Give the width of a path of lookbehinds, characters and lookaheads, in that order and in reach; else -1."""
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
    reach = [len(inside) for _, (_, inside) in looks]
    return width if width and width + max(reach, default=0) <= DEPTH else -1


def _is_look(node: Node, direction: int) -> bool:
    return str(node[0]) == "ASSERT" and node[1][0] == direction


def _is_start(node: Node) -> bool:
    return str(node[0]) == "AT" and str(node[1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING")


def _is_end(node: Node) -> bool:
    return str(node[0]) == "AT" and str(node[1]) in ("AT_END", "AT_END_STRING")


def _backward(path: Sequence[Node], depth: int) -> View:
    """Give the sets that the last `depth` characters before the end of a match must be in, nearest first."""
    return _look(list(path)[::-1], depth, -1)


def _forward(path: Sequence[Node], depth: int) -> View:
    """Give the sets that the first `depth` characters from the start of a match must be in, nearest first."""
    return _look(list(path), depth, 1)


def _look(nodes: list[Node], depth: int, direction: int) -> View:
    """Walk the nodes, listed in the direction of travel, and unite what each way through them may meet."""
    if depth == 0 or not nodes:
        return (ANYTHING,) * depth
    (op, argument), rest = nodes[0], nodes[1:]
    mask = _mask((op, argument))
    if mask is not None:
        return (mask, *_look(rest, depth - 1, direction))
    name = str(op)
    if name in ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP", "MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        views = [_look(_directed(way, direction) + rest, depth, direction) for way in _ways(name, argument, depth)]
        return tuple(_union(masks) for masks in zip(*views, strict=True))
    further = _look(rest, depth, direction)
    if _is_look((op, argument), direction):
        seen = _look(_directed(argument[1], direction), depth, direction)
        return tuple(a & b for a, b in zip(further, seen, strict=True))
    if name in ("ASSERT", "ASSERT_NOT", "AT"):
        return further
    raise UnreadableError(name)


def _directed(nodes: Iterable[Node], direction: int) -> list[Node]:
    return list(nodes)[::direction]


def _ways(name: str, argument: Any, depth: int) -> list[list[Node]]:
    """List the ways through a node that differ within the next `depth` characters."""
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
    united = 0
    for mask in masks:
        united |= mask
    return united


def _required(nodes: Iterable[Node]) -> list[int]:
    found: list[int] = []
    for op, argument in nodes:
        name, mask = str(op), _mask((op, argument))
        if mask is not None:
            found.append(mask)
        elif name == "SUBPATTERN":
            found += _required(_inside(argument))
        elif name == "ATOMIC_GROUP":
            found += _required(argument)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            found += _required(argument[2]) if argument[0] else []
        elif name == "BRANCH":
            each = [_required(branch) for branch in argument[1]]
            if all(each):
                found.append(_union(min(masks, key=_size) for masks in each))
        elif name not in ("ASSERT", "ASSERT_NOT", "AT"):
            raise UnreadableError(name)
    return found


def _size(mask: int) -> int:
    return bin(mask).count("1")


def _mask(node: Node) -> int | None:
    """Give the set of characters of a node that matches exactly one character; None for every other node."""
    name, argument = str(node[0]), node[1]
    if name == "LITERAL":
        return _bit(argument)
    if name == "NOT_LITERAL":
        return OTHER | (ASCII & ~_bit(argument))
    if name == "ANY":
        return OTHER | (ASCII & ~_bit(ord("\n")))
    if name == "IN":
        members = [(str(op), value) for op, value in argument]
        mask = _union(_members(op, value) for op, value in members if op != "NEGATE")
        # Some non-ASCII character is always outside of a set, or may be.
        return OTHER | (ASCII & ~mask) if members[0][0] == "NEGATE" else mask
    return None


def _bit(code: int) -> int:
    return 1 << code if code < 128 else OTHER


def _members(op: str, value: Any) -> int:
    if op == "LITERAL":
        return _bit(value)
    if op == "RANGE":
        low, high = value
        return _union(1 << code for code in range(low, min(high, 127) + 1)) | (OTHER if high > 127 else 0)
    if op == "CATEGORY":
        return _category(str(value))
    raise UnreadableError(op)


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda character: character.isalnum() or character == "_",
}


def _category(name: str) -> int:
    kind = name.removeprefix("CATEGORY_").removeprefix("NOT_")
    if kind not in _CATEGORIES:
        raise UnreadableError(name)
    mask = _union(1 << code for code in range(128) if _CATEGORIES[kind](chr(code)))
    return OTHER | (ASCII & ~mask if "NOT_" in name else mask)

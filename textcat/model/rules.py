"""House rules from a TOML file: topics that documents get or lose, whatever their scores are."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from textcat.base.disk import beside, expanded
from textcat.base.errors import TextcatError
from textcat.base.records import read_record
from textcat.base.settings import parse_toml, read_toml
from textcat.model.conditions import Condition
from textcat.model.exclusions import excluded_topics, reachable
from textcat.model.topic_names import topic_finder

ENDING = ".rules.toml"  # suffix of a file of rules beside a model's folder; its name begins with the folder's name


def path_beside(folder: str | os.PathLike[str]) -> Path:
    """Return the path that a file of rules has beside a model's folder: ``news.rules.toml`` for the folder ``news``."""
    return beside(Path(os.path.abspath(expanded(folder))), ENDING)


def rules_beside(folder: str | os.PathLike[str]) -> str:
    """Return the text of the file of rules beside a model's folder; "" if there is none."""
    path = path_beside(folder)
    return read_rules(path) if path.exists() else ""


def read_rules(path: str | os.PathLike[str]) -> str:
    """Return the text of a file of rules; raise TextcatError if it cannot be read, or is not TOML."""
    read_toml(expanded(path), "file of rules")
    return expanded(path).read_text(encoding="utf-8-sig")


def rules_of_model(
    folder: str | os.PathLike[str],
    topics: Sequence[str],
    names: Mapping[str, str],
    broader: Mapping[str, Sequence[str]],
) -> "Rules | None":
    """Return the rules beside a model's folder; None if there are none.

    TextcatError, which names their file, is raised if they do not fit the model's topics.
    """
    if not (text := rules_beside(folder)):
        return None
    try:
        return Rules.parse(text, topics, names, broader)
    except TextcatError as error:
        raise TextcatError(f"{path_beside(folder)} does not fit the model; mend it: {error}") from error


_Given: TypeAlias = NDArray[np.bool_]  # which topics documents get: shape (n_documents, n_topics)
_Scores: TypeAlias = NDArray[Any]  # of the same shape
_Holding: TypeAlias = NDArray[np.bool_] | None  # see `Rules.holding`; None: no condition holds
_Among: TypeAlias = NDArray[np.bool_] | None  # a mask of documents; None: all
_Rows: TypeAlias = NDArray[np.intp]  # positions of documents
# A function that changes the topics given to some documents, by a rule and scores; it returns the documents changed.
_Apply: TypeAlias = "Callable[[_Rule, _Given, _Scores, _Among], _Rows]"


@dataclass(frozen=True)
class RuleFields:
    """The fields of a file of rules; topics are given by id or by name.

    Parameters
    ----------
    replace : dict of str to str
        A document that gets the first topic gets the second topic instead, or the one by which that is replaced.
    adds : dict of str to list of str
        A document that gets the topic also gets these, such as broader topics, and all topics that these add.
    parents : bool
        A document that gets a topic also gets all topics that are broader than this one.
    only_with : dict of str to list of str
        A document gets the topic only if it also gets one of these, which may be lost by a rule of this kind, too.
    never_with : dict of str to list of str
        A document does not get the topic if it gets one of these: see `excluded_topics`. Of topics that exclude each
        other, it gets the one with the highest score.
    never : list of str
        No document gets these topics.
    narrowest_only : bool
        A document that gets a topic gets none of the topics that are broader than this one.
    at_most : int
        A document gets at most this many topics, those with the highest scores; 0: any number.
    """

    replace: dict[str, str] = field(default_factory=dict)
    adds: dict[str, list[str]] = field(default_factory=dict)
    parents: bool = False
    only_with: dict[str, list[str]] = field(default_factory=dict)
    never_with: dict[str, list[str]] = field(default_factory=dict)
    never: list[str] = field(default_factory=list)
    narrowest_only: bool = False
    at_most: int = 0

    def __post_init__(self) -> None:
        if self.at_most < 0:
            raise TextcatError(
                f"A document cannot get at most {self.at_most} topics: give 1 or more, or 0 for any number."
            )


@dataclass(frozen=True)
class ConditionalRules(RuleFields, Condition):
    """The fields of a table ``[[when]]`` in a file of rules: a condition, and rules for the documents that meet it.

    Parameters
    ----------
    language, source, fields, zone, since, before
        As for `Condition`.
    replace, adds, parents, only_with, never_with, never, narrowest_only, at_most
        As for `RuleFields`.
    """

    def __post_init__(self) -> None:
        RuleFields.__post_init__(self)
        Condition.__post_init__(self)
        if not self.text or not any(getattr(self, rule.name) for rule in fields(RuleFields)):
            lacks = "rule" if self.text else "condition"
            raise TextcatError(f"A [[when]] in the file of rules has no {lacks}: give both a condition and a rule.")


@dataclass(frozen=True)
class RuleFile(RuleFields):
    """The fields of a file of rules: rules for all documents, and rules with conditions.

    Parameters
    ----------
    replace, adds, parents, only_with, never_with, never, narrowest_only, at_most
        As for `RuleFields`.
    when : list of ConditionalRules
    """

    when: list[ConditionalRules] = field(default_factory=list)


class _Rule(NamedTuple):
    """A rule about topics, which are given by their columns."""

    text: str  # such as "adds wheat: grain"
    apply: _Apply
    condition: int | None  # the position of its condition; None: it applies to all documents
    topic: int = -1  # the topic that it is about; -1: any topic
    others: tuple[int, ...] = ()  # the topics that it names besides

    def rows(self, given: _Given, scores: _Scores, holding: _Holding) -> _Rows:
        """Apply the rule, in place; return the documents that it applied to."""
        if self.condition is None:
            return self.apply(self, given, scores, None)
        if holding is not None and (among := holding[:, self.condition]).any():
            return self.apply(self, given, scores, among)
        return np.zeros(0, np.intp)


# A way to apply the rules of a field, in place: it yields each rule with the documents that it applied to.
_Way: TypeAlias = Callable[[Sequence[_Rule], _Given, _Scores, _Holding], Iterator[tuple[_Rule, _Rows]]]


class _Group(NamedTuple):
    """The rules of a field, and the way to apply them."""

    rules: tuple[_Rule, ...]
    apply: _Way


class _Section(NamedTuple):
    """The rules for all documents, or those with one condition, with columns in place of topics."""

    condition: int | None
    asked: RuleFields
    tables: dict[str, dict[int, tuple[int, ...]]]  # of each field in `_TABLES`, the other topics by topic
    never: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules about the topics of a model.

    They are applied in the order of the fields of `RuleFields`: a topic is replaced before others are added, and so on.
    Within each field, rules for all documents come before those with a condition, except in `replace`, `adds`,
    `only_with` and `never_with`, which are each applied together.
    """

    groups: tuple[_Group, ...]  # one of each field, `replace` first; `parents` is among those of `adds`
    conditions: tuple[Condition, ...]
    source: str  # the text of the file

    @classmethod
    def parse(
        cls,
        text: str,
        topics: Sequence[str],
        names: Mapping[str, str] | None = None,
        broader: Mapping[str, Sequence[str]] | None = None,
    ) -> "Rules":
        """Parse the text of a file of rules about the topics of a model.

        Topics may have names and broader topics, by id. Raise TextcatError if the text names a topic that the model
        lacks, or contradicts itself.
        """
        entries = parse_toml(text, "The file of rules")
        if isinstance(entries.get("when"), dict):
            raise TextcatError("The file of rules has [when]: write [[when]], as there may be several.")
        _check_dots(entries)
        asked = read_record(RuleFile, entries, "in the file of rules")
        column_of = {topic: column for column, topic in enumerate(topics)}
        find = topic_finder(column_of, names or {})

        def column(topic: str) -> int:
            try:
                return column_of[find(topic)]
            except TextcatError as error:
                raise TextcatError(f"{error} Mend the file of rules, which names it, or leave it out.") from error

        sections = [_section(i, part, column) for i, part in [(None, asked), *enumerate(asked.when)]]
        ancestors: dict[int, list[int]] = {}
        if any(part.asked.parents or part.asked.narrowest_only for part in sections):
            ancestors = _ancestors(column_of, broader or {})
        for section in sections:
            _check(topics, section, sections[0], ancestors)
        ways: dict[str, _Way] = {
            "replace": partial(_replaced, _order_of_replacements(sections)),
            "adds": _repeated if _is_chained(sections, ancestors) else _once,
            "only_with": _repeated,
            "never_with": _settled,
            **dict.fromkeys(("never", "narrowest_only", "at_most"), _once),
        }
        order = _order(sections)
        rules = [_rules(section, order, ancestors) for section in sections]
        groups = (
            _Group(tuple(chain.from_iterable(of_section.get(name, ()) for of_section in rules)), way)
            for name, way in ways.items()
        )
        return cls(tuple(groups), tuple(asked.when), text)

    @property
    def texts(self) -> tuple[str, ...]:
        """All rules in words, without repetition."""
        return tuple(dict.fromkeys(rule.text for group in self.groups for rule in group.rules))

    @property
    def replaced(self) -> list[int]:
        """The columns of the topics that rules replace by others."""
        return sorted({rule.topic for rule in self.groups[0].rules})

    @property
    def read_fields(self) -> tuple[str, ...]:
        """The fields of records that are needed to check conditions."""
        return tuple(dict.fromkeys(chain.from_iterable(condition.read_fields for condition in self.conditions)))

    def holding(self, documents: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which conditions hold for which texts, Documents or Records: shape (n_documents, n_conditions)."""
        holding = [condition.holds(document) for document in documents for condition in self.conditions]
        return np.array(holding, bool).reshape(len(documents), len(self.conditions))

    def reason(self, given: _Given, scores: _Scores, column: int, holding: _Holding = None) -> str:
        """Return, in words, the rule that gives a document the topic in a column, or takes it away; "" if none does.

        Parameters as for `apply`, for one document. If several rules do, the last one is returned.
        """
        given = given.copy()
        reason, before = "", given[0, column]
        for rule, _ in self._applied(given, scores, holding):
            if given[0, column] != before:
                reason, before = rule.text, given[0, column]
        return reason

    def apply(self, given: _Given, scores: _Scores, holding: _Holding = None) -> tuple[_Given, dict[str, int]]:
        """Return the topics that documents get by the rules, and for each rule the number of documents it applied to.

        Parameters
        ----------
        given : ndarray of shape (n_documents, n_topics), bool
            Topics of documents without the rules.
        scores : ndarray of the same shape
            Used by the rule `at_most`.
        holding : ndarray of shape (n_documents, n_conditions), bool, optional
            The result of the method `holding`; by default, no condition holds.
        """
        given, met = given.copy(), dict[str, list[_Rows]]()
        for rule, rows in self._applied(given, scores, holding):
            met.setdefault(rule.text, []).append(rows)
        # Count documents, not applications: a rule may be applied several times, and several rules may have the same
        # text.
        n_met = {text: len(parts[0]) if len(parts) == 1 else len({*chain(*parts)}) for text, parts in met.items()}
        return given, n_met

    def _applied(self, given: _Given, scores: _Scores, holding: _Holding) -> Iterator[tuple[_Rule, _Rows]]:
        """Apply the rules to the given topics, in place; yield each rule with the documents that it applied to."""
        for group in self.groups:
            yield from group.apply(group.rules, given, scores, holding)


def _check_dots(entries: Mapping[str, Any]) -> None:
    """Raise TextcatError if a topic with a dot is not in quotes, which is a table within a table in TOML."""
    whens = entries.get("when")
    for part in (entries, *(whens if isinstance(whens, list) else ())):
        for name in _TABLES:
            table = part.get(name)
            for topic, inside in table.items() if isinstance(table, dict) else ():
                while isinstance(inside, dict) and inside:
                    key, inside = next(iter(inside.items()))
                    topic = f"{topic}.{key}"
                if topic not in table:
                    raise TextcatError(
                        f"The file of rules has the topic {topic} in {name}, which TOML takes for a table within a "
                        f'table: put names with dots in quotes, "{topic}".'
                    )


def _section(condition: int | None, asked: RuleFields, column: Callable[[str], int]) -> _Section:
    """Return rules with columns in place of topics; `column` returns that of a topic, given by id or name.

    TextcatError is raised if a table has two rules for a topic, which it gives by different names.
    """
    tables = {}
    for name in _TABLES:
        named: dict[int, str] = {}
        for topic in getattr(asked, name):
            first = named.setdefault(column(topic), topic)
            if first != topic:
                raise TextcatError(
                    f"The rules name one topic twice in {name}, as {first!r} and {topic!r}: name it once."
                )
        tables[name] = {place: tuple(map(column, _others(asked, name)[topic])) for place, topic in named.items()}
    return _Section(condition, asked, tables, tuple(map(column, asked.never)))


def _others(asked: RuleFields, table: str) -> dict[str, list[str]]:
    """Return a table of rules, in which `replace`, too, has a list for each topic."""
    entries = getattr(asked, table)
    return {topic: [other] for topic, other in entries.items()} if table == "replace" else entries


def _check(topics: Sequence[str], part: _Section, of_all: _Section, ancestors: Mapping[int, Collection[int]]) -> None:
    """Raise TextcatError if a rule gives a topic that another rule of its section, or for all documents, removes.

    Rules with a condition may remove topics that rules for all documents add: these are exceptions.
    """
    narrowest = part.asked.narrowest_only or of_all.asked.narrowest_only
    if part.asked.parents and narrowest:
        raise TextcatError(
            "The rules have parents, which adds broader topics, and narrowest_only, which takes them away: remove one "
            "of the two."
        )
    own = part.tables["adds"]
    adds = _united(of_all.tables["adds"], own)
    for column, others in own.items():
        for added in others:
            if added != column and added in part.never + of_all.never:
                raise TextcatError(
                    f"The rules add {topics[added]!r} to {topics[column]!r}, and never give it: remove one of the two."
                )
            if narrowest and added in ancestors.get(column, ()):
                raise TextcatError(
                    f"The rules add {topics[added]!r} to {topics[column]!r}, and narrowest_only takes it away, as it "
                    "is broader: remove one of the two."
                )
    never_with = _united(of_all.tables["never_with"], part.tables["never_with"])
    for column, (new,) in part.tables["replace"].items():
        if new in {*part.never, *of_all.never} and new not in part.tables["replace"]:
            raise TextcatError(
                f"The rules replace {topics[column]!r} by {topics[new]!r}, and never give it: remove one of the two."
            )
    for column, others in part.tables["only_with"].items():
        if not others:
            raise TextcatError(
                f"The rules give {topics[column]!r} only with another topic, and name none: name one, or write "
                f"never = [{topics[column]!r}]."
            )
        if {*others} <= {*never_with.get(column, ())}:
            raise TextcatError(
                f"The rules give {topics[column]!r} only with {topics[others[0]]!r}, and never with it: remove one of "
                "the two."
            )
    adding: dict[int, list[int]] = {}
    for column, others in adds.items() if own else ():
        for added in others:
            adding.setdefault(added, []).append(column)
    for topic, others in never_with.items() if own else ():
        causes = {topic, *reachable(topic, adding)} & adds.keys()
        for other in others if causes else ():
            if common := causes & {other, *reachable(other, adding)}:
                raise TextcatError(
                    f"The rules give {topics[topic]!r} and {topics[other]!r} together with "
                    f"{topics[min(common)]!r}, and never give them together: remove one of the two."
                )


def _united(some: Mapping[int, tuple[int, ...]], more: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {**some, **{column: some.get(column, ()) + others for column, others in more.items()}}


def _ancestors(column_of: Mapping[str, int], broader: Mapping[str, Sequence[str]]) -> dict[int, list[int]]:
    """Return all ancestors of each topic: its broader topics, their broader topics, and so on."""
    links = {
        column_of[topic]: [column_of[other] for other in others if other in column_of]
        for topic, others in broader.items()
        if topic in column_of
    }
    if not any(links.values()):
        raise TextcatError(
            "The model knows no broader topics, which the rules parents and narrowest_only need: train it with a "
            "vocabulary in SKOS, or give it one with `textcat learn MODEL --vocabulary FILE`."
        )
    return {column: reachable(column, links) for column in links}


def _order_of_replacements(sections: Sequence[_Section]) -> list[int]:
    """Return a topological order of topics, in which a topic that is replaced by another precedes it.

    TextcatError is raised if replacements, of whichever sections, form a cycle.
    """
    sorter, named = TopologicalSorter[int](), dict[int, str]()
    for part in sections:
        for (old, (new,)), topic in zip(part.tables["replace"].items(), part.asked.replace, strict=True):
            sorter.add(new, old)
            named[old] = topic
    try:
        return [*sorter.static_order()]
    except CycleError as error:
        names = [repr(named[column]) for column in reversed(error.args[1])]
        raise TextcatError(
            f"The rules replace {' by '.join(names)}, which leads back to the first: remove one of these replacements."
        ) from error


def _order(sections: Sequence[_Section]) -> dict[int, int]:
    """Return a topological order of topics, in which a topic that adds another precedes it; {} if there is a cycle."""
    sorter = TopologicalSorter[int]()
    for part in sections:
        for column, others in part.tables["adds"].items():
            for added in others:
                if added != column:
                    sorter.add(added, column)
    try:
        return {column: place for place, column in enumerate(sorter.static_order())}
    except CycleError:
        return {}


def _is_chained(sections: Sequence[_Section], ancestors: Mapping[int, Collection[int]]) -> bool:
    """Return whether a topic that a rule adds makes another rule add a topic."""
    adding = {column for part in sections for column in part.tables["adds"]}
    added = {other for part in sections for others in part.tables["adds"].values() for other in others}
    if not adding.isdisjoint(added):
        return True
    return any(part.asked.parents for part in sections) and not (
        added.isdisjoint(ancestors) and adding.isdisjoint(chain.from_iterable(ancestors.values()))
    )


# --- ways to apply the rules of a field ------------------------------------------------------------------------------


def _once(rules: Sequence[_Rule], given: _Given, scores: _Scores, holding: _Holding) -> Iterator[tuple[_Rule, _Rows]]:
    """Apply rules one after the other, in place; yield each with the documents that it applied to."""
    for rule in rules:
        yield rule, rule.rows(given, scores, holding)


def _replaced(
    order: Sequence[int], rules: Sequence[_Rule], given: _Given, scores: _Scores, holding: _Holding
) -> Iterator[tuple[_Rule, _Rows]]:
    """Replace topics in a topological order, in place; a rule for all documents applies where no condition holds."""
    rules_of: dict[int, list[_Rule]] = {}
    for rule in rules:
        rules_of.setdefault(rule.topic, []).append(rule)
    for topic in filter(rules_of.__contains__, order):
        rows_of = [rule.rows(given, scores, holding) for rule in rules_of[topic]]
        if rules_of[topic][0].condition is None and len(rows_of) > 1:
            rows_of[0] = np.setdiff1d(rows_of[0], np.concatenate(rows_of[1:]))
        for rule, rows in zip(rules_of[topic], rows_of, strict=True):
            given[rows, topic] = False
            given[rows[:, None], rule.others] = True
            yield rule, rows


def _repeated(
    rules: Sequence[_Rule], given: _Given, scores: _Scores, holding: _Holding
) -> Iterator[tuple[_Rule, _Rows]]:
    """Like `_once`, but again and again, until nothing changes."""
    is_met = True
    while is_met:
        is_met = False
        for rule, rows in _once(rules, given, scores, holding):
            yield rule, rows
            is_met = is_met or len(rows) > 0


def _settled(
    rules: Sequence[_Rule], given: _Given, scores: _Scores, holding: _Holding
) -> Iterator[tuple[_Rule, _Rows]]:
    """Take away topics that others exclude, in place: see `excluded_topics`; of equal scores, the first topic stays."""
    met: dict[int, list[_Rule]] = {}
    for rule in rules:
        for row in rule.rows(given, scores, holding).tolist():
            met.setdefault(row, []).append(rule)
    losses: dict[_Rule, list[tuple[int, int]]] = {rule: [] for rule in rules}
    for row, of_row in met.items():
        excluders: dict[int, set[int]] = {}
        for rule in of_row:
            excluders.setdefault(rule.topic, set()).update(other for other in rule.others if given[row, other])
        topics = sorted({*excluders, *chain.from_iterable(excluders.values())})
        rank = {topics[place]: i for i, place in enumerate(np.argsort(-scores[row, topics], kind="stable").tolist())}
        for lost, stays in excluded_topics(excluders, rank).items():
            pairs = (lost, stays), (stays, lost)
            rule = next(rule for pair in pairs for rule in of_row if rule.topic == pair[0] and pair[1] in rule.others)
            losses[rule].append((row, lost))
    for rule, places in losses.items():
        for row, lost in places:
            given[row, lost] = False
        yield rule, np.unique(np.array([row for row, _ in places], np.intp))


# --- the rules of each field, in words and as functions --------------------------------------------------------------


def _rules(
    section: _Section, order: Mapping[int, int], ancestors: Mapping[int, Sequence[int]]
) -> dict[str, list[_Rule]]:
    """Return the rules of a section by field; `parents` is among those of `adds`, which are in the given order."""
    asked = section.asked
    start = f"for {asked.text}: " if isinstance(asked, Condition) else ""

    def rule(text: str, apply: _Apply, topic: int = -1, others: tuple[int, ...] = ()) -> _Rule:
        return _Rule(start + text, apply, section.condition, topic, others)

    rules = {
        name: [
            rule(f"{name} {topic}: {', '.join(others)}", apply, *columns)
            for (topic, others), columns in zip(_others(asked, name).items(), section.tables[name].items(), strict=True)
        ]
        for name, apply in _TABLES.items()
    }
    rules["adds"].sort(key=lambda added: order.get(added.topic, 0))
    if asked.parents:
        rules["adds"].append(rule("parents", _with_ancestors(ancestors, gives=True)))
    rules["never"] = [rule(f"never {topic}", _remove, i) for topic, i in zip(asked.never, section.never, strict=True)]
    if asked.narrowest_only:
        rules["narrowest_only"] = [rule("narrowest_only", _with_ancestors(_narrower(ancestors), gives=False))]
    if asked.at_most:
        rules["at_most"] = [rule(f"at_most {asked.at_most}", partial(_limit, asked.at_most))]
    return rules


def _find(rule: _Rule, given: _Given, _: Any, among: _Among) -> _Rows:
    """Return the documents that have the topic, and change nothing."""
    return np.flatnonzero(given[:, rule.topic] if among is None else given[:, rule.topic] & among)


def _add(rule: _Rule, given: _Given, scores: _Scores, among: _Among) -> _Rows:
    rows = _find(rule, given, scores, among)
    met = rows[~given[rows[:, None], rule.others].all(axis=1)]
    given[met[:, None], rule.others] = True
    return met


def _keep(rule: _Rule, given: _Given, scores: _Scores, among: _Among) -> _Rows:
    rows = _find(rule, given, scores, among)
    met = rows[~given[rows[:, None], rule.others].any(axis=1)]
    given[met, rule.topic] = False
    return met


def _find_together(rule: _Rule, given: _Given, scores: _Scores, among: _Among) -> _Rows:
    """Return the documents that have the topic and one of the others, and change nothing."""
    rows = _find(rule, given, scores, among)
    return rows[given[rows[:, None], rule.others].any(axis=1)]


# The fields with rules by topic, each with the function that applies such a rule.
_TABLES: dict[str, _Apply] = {"replace": _find, "adds": _add, "only_with": _keep, "never_with": _find_together}


def _remove(rule: _Rule, given: _Given, scores: _Scores, among: _Among) -> _Rows:
    rows = _find(rule, given, scores, among)
    given[rows, rule.topic] = False
    return rows


def _narrower(ancestors: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return the ancestors that each topic takes away: none of the topics in a cycle is the narrowest one."""
    sets = {column: {*others} for column, others in ancestors.items()}
    return {
        column: [other for other in others if column not in sets.get(other, ())] for column, others in ancestors.items()
    }


def _with_ancestors(ancestors: Mapping[int, Sequence[int]], *, gives: bool) -> _Apply:
    """Return a rule that gives or removes the ancestors of each topic that a document has."""
    lists = [ancestors.get(column, ()) for column in range(1 + max(ancestors))]
    return partial(_relate, np.array([*map(len, lists)]), np.fromiter(chain.from_iterable(lists), np.intp), gives)


def _relate(
    sizes: NDArray[np.intp], flat: NDArray[np.intp], gives: bool, _: _Rule, given: _Given, __: Any, among: _Among
) -> _Rows:
    """Give or remove the ancestors of topics: `sizes` has their number for each topic, and `flat` lists them all."""
    rows, columns = np.nonzero(given[:, : len(sizes)])
    if among is not None:
        rows, columns = rows[among[rows]], columns[among[rows]]
    n_others = sizes[columns]
    starts = np.repeat(np.cumsum(sizes)[columns] - np.cumsum(n_others), n_others)
    rows, others = np.repeat(rows, n_others), flat[starts + np.arange(len(starts))]
    changes = given[rows, others] != gives
    rows, others = rows[changes], others[changes]
    given[rows, others] = gives
    return np.unique(rows)


def _limit(most: int, _: _Rule, given: _Given, scores: _Scores, among: _Among) -> _Rows:
    are_too_many = given.sum(axis=1) > most
    too_many = np.flatnonzero(are_too_many if among is None else are_too_many & among)
    for row in too_many.tolist():
        columns = np.flatnonzero(given[row])
        given[row, columns[np.argsort(-scores[row, columns], kind="stable")[most:]]] = False
    return too_many

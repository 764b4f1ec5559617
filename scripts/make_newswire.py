#!/usr/bin/env python
"""Write corpora/newswire/newswire.sgm: invented newswire stories in Reuters-21578's format, from a lexicon and a seed.

    scripts/make_newswire.py [FILE]

The same lexicon and seed give the same file, byte for byte, on every Python version: all randomness comes from
`random.Random.random`, the one method whose sequence Python promises to keep.
"""

from __future__ import annotations

import random
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "newswire"
SEED = 1992
UNUSED = 30
WIDTH = 64
# How hard the corpus is: the chance of a second topic, of a passing mention of a topic the story is not filed under,
# of "supplies" for "tin", of a topic the indexer overlooked; and how many sentences are about nothing in particular.
SECOND_TOPIC, MENTION, VAGUE, OVERLOOKED, MOST_GENERIC = 0.22, 0.6, 0.4, 0.05, 5
BRIEF, UNPROC, AUTHOR, LOST_CHARACTER = 0.07, 0.04, 0.05, 0.02

# Not from strftime, which follows the locale.
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


class Chance(random.Random):
    """Chance drawn from `random()` alone."""

    def below(self, n: int) -> int:
        """Draw from 0 to n - 1."""
        return int(self.random() * n)

    def pick(self, items: Sequence[T], skew: float = 1.0) -> T:
        """Choose one; a skew above 1 prefers the first ones."""
        return items[int(len(items) * self.random() ** skew)]

    def mixed(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order."""
        keys = [self.random() for _ in items]
        return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


@dataclass(frozen=True)
class World:
    """The invented names."""

    companies: list[str]
    people: list[str]
    towns: list[str]
    lands: list[str]

    @classmethod
    def invent(cls, chance: Chance, parts: dict[str, str]) -> World:
        """Compose names from syllables and endings."""
        pick = {part: partial(chance.pick, choices.split("|")) for part, choices in parts.items()}
        words: dict[str, None] = {}
        while len(words) < 2600:
            syllables = [pick["onsets"]() + pick["vowels"](2) for _ in range(2 + chance.below(2))]
            words["".join([*syllables, pick["codas"]()]).capitalize()] = None
        names = list(words)
        return cls(
            companies=[f"{name} {pick['companies'](1.5)}" for name in names[:1100]],
            people=[f"{pick['first']()} {name}" for name in names[1100:2000]],
            towns=[name + pick["towns"]() for name in names[2000:2500]],
            lands=[name + pick["lands"]() for name in names[2500:]],
        )


class Story:
    """One story's choices: its names stay the same from title to end."""

    def __init__(self, chance: Chance, world: World, lexicon: dict[str, Any]) -> None:
        self.chance, self.common = chance, lexicon["common"]
        self.families, self.topics = lexicon["family"], lexicon["topic"]
        company, rival = (chance.pick(world.companies) for _ in range(2))
        self.names = {
            "company": company,
            "rival": rival,
            "ticker": f"<{re.sub('[^A-Z]', '', company.upper())[:4]}>",
            "person": chance.pick(world.people, 1.3),
            "town": chance.pick(world.towns, 1.5),
            "port": chance.pick(world.towns, 1.5),
            "land": chance.pick(world.lands, 1.7),
        }

    def fill(self, template: str, topic: dict[str, Any]) -> str:
        """Replace slots until none is left."""
        family = self.families[topic["family"]]

        def value(slot: re.Match[str]) -> str:
            name = slot[1]
            if name in self.names:
                return self.names[name]
            if name in ("n", "d", "nnn", "day_n"):
                low, high = {"n": (2, 99), "d": (0, 10), "nnn": (100, 1000), "day_n": (1, 29)}[name]
                return str(low + self.chance.below(high - low))
            if name == "things" and self.chance.random() < VAGUE:
                name = "vague"
            words = topic.get(name) or family.get(name) or self.common[name]
            return self.fill(self.chance.pick(words.split("|"), 1.5), topic)

        return re.sub(r"\{(\w+)\}", value, template)

    def sentences(self, name: str, n: int) -> list[str]:
        """Write at most n different sentences about a topic."""
        topic = self.topics[name]
        templates = (topic.get("sentences") or self.families[topic["family"]]["sentences"]).strip().split("\n")
        return [sentence(self.fill(template, topic)) for template in self.chance.mixed(templates)[:n]]

    def generic(self, n: int, name: str) -> list[str]:
        """Write n sentences any story might have."""
        templates = self.common["generic"].strip().split("\n")
        return [sentence(self.fill(self.chance.pick(templates), self.topics[name])) for _ in range(n)]

    def title(self, name: str) -> str:
        """Write a headline."""
        topic = self.topics[name]
        return self.fill(self.chance.pick(self.families[topic["family"]]["title"].strip().split("\n")), topic).upper()

    def table(self, name: str) -> list[str]:
        """Write a weekly return in columns."""
        labels = [self.fill("{things}", self.topics[name]) for _ in range(2)] + [
            self.fill("{adjective} {noun}", self.topics[name]) for _ in range(4)
        ]
        return [
            f" {label.capitalize():.<30}{self.fill('{n}.{d}', self.topics[name]):.>8} vs"
            f"{self.fill('{n}.{d}', self.topics[name]):.>8}"
            for label in self.chance.mixed(labels)
        ]


def sentence(text: str) -> str:
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return text[0].upper() + text[1:] + "."


def labels_of(lexicon: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Return the topics a story is filed under: those it is about and the ones above them."""
    named = [name for name in names if not name.startswith("none-")]
    parents = [lexicon["topic"][name].get("parent", "") for name in named]
    return sorted({*named, *parents} - {""})


def story_markup(chance: Chance, world: World, lexicon: dict[str, Any], name: str, part: str, when: datetime) -> str:
    """Write one story about the topic `name`, without its id."""
    story = Story(chance, world, lexicon)
    companions = lexicon["topic"][name]["companions"].split()
    about = [name]
    if companions and chance.random() < SECOND_TOPIC:
        about.append(chance.pick(companions))
    lead, *body = story.sentences(name, 1 + chance.below(4))
    body += [s for other in about[1:] for s in story.sentences(other, 1 + chance.below(2))]
    if chance.random() < MENTION:
        body += story.sentences(chance.pick([t for t in lexicon["topic"] if t not in about]), 1)
    body += story.generic(1 + chance.below(MOST_GENERIC), name)
    paragraphs = [lead, *chance.mixed(body)]
    topics = [t for t in labels_of(lexicon, about) if t == name or chance.random() >= OVERLOOKED]
    return markup(story, name, topics, paragraphs, part, when)


def markup(story: Story, name: str, topics: list[str], paragraphs: list[str], part: str, when: datetime) -> str:
    split, cgi, indexed = {
        "train": ("TRAIN", "TRAINING-SET", "YES"),
        "test": ("TEST", "PUBLISHED-TESTSET", "YES"),
        "unused": ("NOT-USED", "TRAINING-SET", story.chance.pick(("NO", "BYPASS"))),
    }[part]
    entries = "".join(f"<D>{topic}</D>" for topic in topics)
    date = f"{when.day:2d}-{MONTHS[when.month - 1]}-{when:%Y %H:%M:%S}.{story.chance.below(100):02d}"
    wire = f"&#5;&#5;&#5;{name[0].upper()} N\n&#22;&#22;&#1;nw{story.chance.below(10000):04d}&#31;wire"
    return (
        f'<REUTERS TOPICS="{indexed}" LEWISSPLIT="{split}" CGISPLIT="{cgi}" OLDID="@OLDID@" NEWID="@NEWID@">\n'
        f"<DATE>{date}</DATE>\n<TOPICS>{entries}</TOPICS>\n<PLACES><D>{story.names['land'].lower()}</D></PLACES>\n"
        f"<UNKNOWN>{wire}</UNKNOWN>\n"
        f"{text_element(story, name, paragraphs, when)}\n</REUTERS>\n"
    )


def text_element(story: Story, name: str, paragraphs: list[str], when: datetime) -> str:
    chance, title = story.chance, escape(story.title(name))
    kind = chance.random()
    if kind < BRIEF:
        return f'<TEXT TYPE="BRIEF">&#2;\n******<TITLE>{title}\n</TITLE>&#3;\n\n</TEXT>'
    if kind < BRIEF + UNPROC:
        lines = [title, *story.table(name), *map(escape, paragraphs[:1])]
        return '<TEXT TYPE="UNPROC">&#2;\n' + "\n".join(lines) + "\n&#3;\n\n</TEXT>"
    author = f"<AUTHOR>    By {story.names['person']}</AUTHOR>\n" if chance.random() < AUTHOR else ""
    body = "\n".join(textwrap.fill(p, WIDTH, initial_indent="    ", break_on_hyphens=False) for p in paragraphs)
    body = escape(body.strip())
    if chance.random() < LOST_CHARACTER:
        body = body.replace(" ", "&#127;", 1)
    dateline = f"    {story.names['town'].upper()}, {MONTHS[when.month - 1].capitalize()} {when.day} - "
    return (
        f"<TEXT>&#2;\n<TITLE>{title}</TITLE>\n{author}<DATELINE>{dateline}</DATELINE>"
        f"<BODY>{body}\n Newswire\n&#3;</BODY></TEXT>"
    )


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def plan(chance: Chance, lexicon: dict[str, Any]) -> list[tuple[str, str]]:
    """Topic and part of every story in the order of time: the test part comes after the training part."""
    train = [name for name, topic in lexicon["topic"].items() for _ in range(topic["train"])]
    test = [name for name, topic in lexicon["topic"].items() for _ in range(max(1, topic["train"] // 2))]
    unused = [chance.pick(train) for _ in range(UNUSED)]
    early = [(name, "train") for name in train] + [(name, "unused") for name in unused]
    return chance.mixed(early) + chance.mixed([(name, "test") for name in test])


def newswire(lexicon: dict[str, Any], seed: int = SEED) -> bytes:
    """Return the whole corpus as one SGML file."""
    chance = Chance(seed)
    world = World.invent(chance, lexicon["names"])
    when = datetime(1992, 3, 2, 6)
    stories = []
    for number, (name, part) in enumerate(plan(chance, lexicon), start=1):
        when += timedelta(seconds=60 + chance.below(14000))
        text = story_markup(chance, world, lexicon, name, part, when)
        stories.append(text.replace("@NEWID@", str(number)).replace("@OLDID@", str(7000 + number)))
    return ('<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join(stories)).encode("latin-1")


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "newswire.sgm"
    lexicon = tomllib.loads((FOLDER / "lexicon.toml").read_text(encoding="utf-8"))
    target.write_bytes(newswire(lexicon))


if __name__ == "__main__":
    main()

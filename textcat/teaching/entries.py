"""Check what persons enter in a session: names of topics, answers, criteria and exclusion reasons."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from textcat.base.errors import TextcatError
from textcat.teaching.judgements import LONGEST_NAME
from textcat.teaching.steps import ANSWERS, SOURCES

LONGEST_EXCLUSION_REASON = 200  # maximum characters of an exclusion reason: it is shown on a button and in tables


def check_answers(answers: Iterable[str], source: str) -> None:
    """Raise TextcatError if an answer or its source is not allowed, or if an adjudicating answer is "skip"."""
    if source not in SOURCES or source == "example":
        raise TextcatError(f"No source {source!r} of an answer: choose one of asked, search, list and adjudicated.")
    for answer in answers:
        if answer not in ANSWERS or (source == "adjudicated" and answer == "skip"):
            raise TextcatError(f"No answer {answer!r}: choose one of {', '.join(ANSWERS)}; skip adjudicates nothing.")


def checked_exclusion_reason(reason: str, answer: str) -> str:
    """Return an exclusion reason in one line, without repeated spaces.

    Raise TextcatError if the reason is too long, or if it comes with another answer than "no".
    """
    reason = " ".join(reason.split())
    if reason and answer != "no":
        raise TextcatError(f"The exclusion reason {reason!r:.80} came with {answer!r}: give it with the answer 'no'.")
    if len(reason) > LONGEST_EXCLUSION_REASON:
        raise TextcatError(
            f"The exclusion reason {reason:.20}… has {len(reason):,} characters, and {LONGEST_EXCLUSION_REASON} are "
            "the most: move the rest to a note."
        )
    return reason


def with_single_spaces(name: str) -> str:
    """Return a topic's name without white space around it, with single spaces inside: as it is read from a corpus."""
    return " ".join(name.split())


def check_name(name: str, topics: Container[str]) -> None:
    """Raise TextcatError if a new topic's name is empty, too long, or one of `topics`."""
    if not name.strip():
        raise TextcatError("A topic needs a name: give one.")
    if len(name) > LONGEST_NAME:
        raise TextcatError(
            f"The name of the topic {name:.20}… has {len(name):,} characters, and {LONGEST_NAME} are the most: "
            "move the rest to its description."
        )
    if name in topics:
        raise TextcatError(f"The session has a topic {name!r} already: resume it, or give another name.")


def shown_to_persons(criteria: str, exclusion_reasons: Iterable[str]) -> dict[str, Any]:
    """Return the entries of a topic that persons see: criteria and exclusion reasons; empty ones are left out."""
    reasons = [*dict.fromkeys(checked_exclusion_reason(reason, "no") for reason in exclusion_reasons)]
    shown: dict[str, Any] = {"criteria": criteria.strip(), "exclusion_reasons": [*filter(None, reasons)]}
    return {name: value for name, value in shown.items() if value}

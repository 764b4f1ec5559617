"""Teach a topic on an unlabelled archive by active learning: ask about documents, record answers, rank again."""

from textcat.teaching.advice import Advisor
from textcat.teaching.evidence import evidence_for, terms
from textcat.teaching.export import (
    write_audit,
    write_corpus,
    write_duplicates,
    write_included,
    write_labels,
    write_model,
    write_records,
)
from textcat.teaching.progress import history, progress_of
from textcat.teaching.screening import screening_counts, write_counts
from textcat.teaching.search import Search
from textcat.teaching.view import View

__all__ = [
    "Advisor",
    "Search",
    "View",
    "evidence_for",
    "history",
    "progress_of",
    "screening_counts",
    "terms",
    "write_audit",
    "write_corpus",
    "write_counts",
    "write_duplicates",
    "write_included",
    "write_labels",
    "write_model",
    "write_records",
]

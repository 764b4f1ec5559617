"""What a model records about its training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from textcat.reading import named_in_training
from textcat.recipes.recipe import Recipe

UNKNOWN = Recipe("")  # the recipe of taggers that were not trained by one


@dataclass(frozen=True, eq=False)
class TrainingFacts:
    """What a model records about its training, for tables and later commands.

    The tags of a text do not depend on it, but `origin` also names the columns or fields that are read as text.

    Parameters
    ----------
    train_sizes : ndarray of shape (n_topics,), int
        The number of positive training documents of each topic.
    train_documents : int
        The number of all training documents.
    per_topic : mapping of str to sequence of length n_topics
        Values for each topic, by name: tau_pos, epochs, updates, support, stopped and others.
    recipe, corpus, origin : Recipe, str, dict
        The recipe with all settings but without a name, the name of the corpus, and its `Corpus.origin`.
    choices : dict of str to dict
        The choices that training made, with the measures that decided them, such as {"rows": {"chosen": "words", …}};
        also "forecast", the gain from more training documents, and "aging", how rankings get worse with time.
    train_dates : (str, str), optional
        The first and the last date of the training documents, in ISO 8601; None if they have no dates.
    converged : ndarray of shape (n_topics,), bool, optional
        Whether training converged; None if the model was read from a folder. `per_topic` has the same in words.
    """

    train_sizes: np.ndarray
    train_documents: int
    per_topic: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    recipe: Recipe = UNKNOWN
    corpus: str = ""
    origin: dict[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)
    train_dates: tuple[str, str] | None = None
    converged: np.ndarray | None = None

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns or fields that the user named in training as holding the text; () if none were named."""
        return named_in_training(self.origin)

    @property
    def forecast(self) -> str:
        """The forecast gain from more training documents, in words; "" if training made no forecast."""
        if "forecast" not in self.choices:
            return ""
        (n, now, *_), *_, (twice, then, low, high) = self.choices["forecast"]["forecast"]
        return (
            f"With {twice - n:,} more documents: top-1 accuracy {now:.2f} → about {then:.2f} ({low:.2f} to {high:.2f})"
        )

    @property
    def aging(self) -> str:
        """How rankings get worse with time, in words; "" if training did not measure it."""
        if "aging" not in self.choices:
            return ""
        (_, _, now, low, _), *later = self.choices["aging"]["parts"]
        falls = ", ".join(f"{accuracy:.2f} after {days} days" for days, _, accuracy, *_ in later)
        worse = next((days for days, _, _, _, high in later if high < low), None)
        best = f"best before {worse} days" if worse is not None else f"no fall beyond chance in {later[-1][0]} days"
        return f"Top-1 accuracy {now:.2f} on documents of the same time, {falls}: {best}"

    def of_topics(self, columns: np.ndarray) -> "TrainingFacts":
        """Return a copy restricted to the topics in the given columns."""
        per_topic = {name: [values[j] for j in columns.tolist()] for name, values in self.per_topic.items()}
        return replace(self, train_sizes=self.train_sizes[columns], per_topic=per_topic)

"""Turn scores into the topics that documents get, by thresholds, calibration curves and a strategy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError
from textcat.evaluation.evaluation import single_topic_thresholds
from textcat.evaluation.expected_recall import ExpectedRecall
from textcat.evaluation.promises import Promises, Status
from textcat.model.rules import Rules
from textcat.model.scorer import highest_scores
from textcat.trends.held_out import HeldOut


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decide which topics documents get, given the documents' scores.

    Parameters
    ----------
    thresholds : ndarray of shape (n_topics,), float32
        A document gets a topic if its score is above the threshold.
    calibration : Calibration, optional
        The curves from scores to probabilities.
    strategy : str, default="zero"
        A strategy of recipes. With "single", each document gets exactly one topic, the one with the highest
        probability, and thresholds are ignored unless `above_only`. The other strategies differ in how training chooses
        the thresholds.
    promises : Promises, optional
        They decide which tags are given automatically, and which are for review by a person. The thresholds are then
        those of review.
    expected_recall : ExpectedRecall, optional
        Estimates the share of each document's topics that its tags have found; for models with promises.
    automatic_only : bool, default=False
        Give only automatic tags; this needs promises.
    above_only : bool, default=False
        Give only topics with scores above their thresholds, also if `single`: a document may then get no topic.
    rules : Rules, optional
        Rules that add or remove topics, whatever the scores.
    held_out : HeldOut, optional
        Histograms of held-out scores, by which prevalences are estimated; only with a calibration.
    """

    thresholds: np.ndarray
    calibration: Calibration | None = None
    strategy: str = "zero"
    promises: Promises | None = None
    expected_recall: ExpectedRecall | None = None
    automatic_only: bool = False
    above_only: bool = False
    rules: Rules | None = None
    held_out: HeldOut | None = None

    def checked(self, topics: Sequence[str]) -> "Decisions":
        """Return a copy with an array of thresholds; raise TextcatError unless each topic has a number there."""
        values = np.asanyarray(self.thresholds)  # it may be memory-mapped
        if values.shape != (len(topics),) or values.dtype.kind not in "fiu":
            raise TextcatError(
                f"The thresholds {self.thresholds!r:.80} are not {len(topics):,} numbers: give one for each topic."
            )
        if np.isnan(values).any():
            topic = topics[int(np.isnan(values).argmax())]
            raise TextcatError(
                f"The threshold of {topic!r} is NaN: give a number, or inf for a topic that no document gets."
            )
        return replace(self, thresholds=values)

    @property
    def single(self) -> bool:
        """Whether each document gets exactly one topic, the one with the highest probability."""
        return self.strategy == "single"

    @property
    def without_rules(self) -> "Decisions":
        """A copy without house rules."""
        return replace(self, rules=None)

    def holding(self, documents: Sequence[Any]) -> np.ndarray | None:
        """Return which conditions of the rules hold for which documents; None if no rule has a condition.

        Parameters
        ----------
        documents : sequence of str, Document or Record

        Returns
        -------
        holding : ndarray of shape (n_documents, n_conditions), bool, or None
        """
        return self.rules.holding(documents) if self.rules is not None and self.rules.conditions else None

    @property
    def read_fields(self) -> tuple[str, ...]:
        """The further fields of documents that the conditions of rules read."""
        return () if self.rules is None else self.rules.read_fields

    def decide(
        self, scores: np.ndarray, has_terms: np.ndarray | None = None, holding: np.ndarray | None = None
    ) -> np.ndarray:
        """Return whether each document gets each topic.

        Parameters
        ----------
        scores, has_terms, holding
            As for `Tagger.select`.

        Returns
        -------
        given : ndarray of shape (n_documents, n_topics), bool
        """
        return self.decide_by_rules(scores, has_terms, holding)[0]

    def decide_by_rules(
        self, scores: np.ndarray, has_terms: np.ndarray | None = None, holding: np.ndarray | None = None
    ) -> tuple[np.ndarray, dict[str, int]]:
        """Return the result of `decide`, and for each rule the number of documents it applied to; {} without rules.

        Parameters
        ----------
        scores, has_terms, holding
            As for `Tagger.select`.

        Returns
        -------
        given : ndarray of shape (n_documents, n_topics), bool
        met : dict of str to int
        """
        if self.rules is not None and self.automatic_only and self.promises is not None:
            # Rules apply to all tags, as without the option: a tag for review may exclude an automatic one.
            given, met = replace(self, automatic_only=False).decide_by_rules(scores, has_terms, holding)
            automatic = self.automatic(scores, given, holding)
            assert automatic is not None
            return automatic, met
        above = np.asarray(scores > self.cut_scores(scores))
        if has_terms is not None and not self.single:
            above &= has_terms[:, None]
        return (above, {}) if self.rules is None else self.rules.apply(above, scores, holding)

    def automatic(self, scores: np.ndarray, given: np.ndarray, holding: np.ndarray | None = None) -> np.ndarray | None:
        """Return which of the given topics are automatic; None if the model makes no promises.

        A topic added by a rule is automatic if the topic that triggered the rule is, and is given or replaced.

        Parameters
        ----------
        scores, given : ndarray of shape (n_documents, n_topics)
        holding
            As for `Tagger.select`.

        Returns
        -------
        automatic : ndarray of the same shape, bool, or None
        """
        if self.promises is None:
            return None
        above = np.asarray(scores > self.promises.threshold)
        if self.rules is None:
            return given & above
        counts = given.copy()
        replaced = self.rules.replaced
        counts[:, replaced] |= scores[:, replaced] > np.broadcast_to(self.cut_scores(scores), scores.shape)[:, replaced]
        return given & self.rules.apply(above & counts, scores, holding)[0]

    def cut_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the thresholds for scores: one per topic or, if `single`, one per document and topic.

        If `single`, each document gets one topic at most, so a threshold depends on the document's other scores.
        """
        cuts = single_topic_thresholds(self._comparable(scores)) if self.single else self.thresholds
        if self.above_only:
            cuts = np.maximum(cuts, self.thresholds)
        if self.automatic_only and self.promises is not None:
            return np.maximum(cuts, self.promises.threshold)
        return cuts

    def first_topics(self, scores: np.ndarray, n: int | None) -> np.ndarray:
        """Rank the topics of each document; topics of equal scores keep their order.

        Parameters
        ----------
        scores
            As for `Tagger.select`.
        n : int or None
            The number of topics to return; None: all.

        Returns
        -------
        columns : ndarray of shape (n_documents, n)
            The columns of each document's n best topics, the best first.
        """
        values = self._comparable(scores)
        return highest_scores(values, values.shape[1] if n is None else n)[0]

    def _comparable(self, scores: np.ndarray) -> np.ndarray:
        """Return values to rank a document's topics by: scores, or log odds if each document gets exactly one topic."""
        if not self.single or self.calibration is None:
            return scores
        # not probabilities, which may all round to 1
        return np.asarray(scores * self.calibration.a + self.calibration.b)

    def statuses(self, scores: np.ndarray, columns: np.ndarray) -> list[Status | None]:
        """Return for each tag whether it may be given without a person.

        Parameters
        ----------
        scores, columns : ndarray of shape (n_tags,)
            The score of each tag, and the column of its topic.

        Returns
        -------
        list of Status or None
            None if the model makes no promises, or below all thresholds, unless each document gets exactly one topic.
        """
        if self.promises is None:
            return [None] * len(scores)
        return self.promises.statuses(scores, columns, all_given=self.single)

    def expected_recalls(
        self, scores: np.ndarray, has_terms: np.ndarray | None = None, holding: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the expected recall of each document's tags above the thresholds.

        Topics of which no negative document was held out do not count: every document has a high probability for them.

        Parameters
        ----------
        scores, has_terms, holding
            As for `Tagger.select`.

        Returns
        -------
        recalls : ndarray of shape (n_documents,), float64

        Raises
        ------
        TextcatError
            If the model makes no promises.
        """
        if self.expected_recall is None:
            raise TextcatError("The model makes no promises, and expects no recall: train it with --promise.")
        given, probabilities = self.decide(scores, has_terms, holding), self.curves().probabilities(scores)
        if self.held_out is not None and not (has_negatives := self.held_out.negatives.any(axis=1)).all():
            # As in the regression's own documents, which were not labelled for these topics.
            scores, probabilities = (np.where(has_negatives, values, np.nan) for values in (scores, probabilities))
            given = given & has_negatives
        return self.expected_recall.of(scores, probabilities, given)

    def curves(self) -> Calibration:
        """Return the calibration curves, from scores to probabilities; raise TextcatError if there are none."""
        if self.calibration is None:
            why, remedy = why_uncalibrated(self.strategy)
            raise TextcatError(f"The model has no probabilities, as {why}: {remedy}.")
        return self.calibration

    def with_min_probability(self, probability: float) -> "Decisions":
        """Return decisions that give only topics of at least this probability: the scores with it are thresholds."""
        return replace(self, thresholds=self.curves().threshold(probability), above_only=True)

    def with_options(self, min_probability: float | None, automatic_only: bool) -> "Decisions":
        """Return decisions with the options of tagging.

        Parameters
        ----------
        min_probability : float or None
            The probability to choose all thresholds by, if there are curves; None: the thresholds stay.
        automatic_only : bool
            Whether to give automatic tags only.

        Returns
        -------
        Decisions
        """
        decisions = replace(self, automatic_only=True) if automatic_only else self
        if min_probability is None or self.calibration is None:
            return decisions
        return decisions.with_min_probability(min_probability)

    def of_topics(self, columns: np.ndarray) -> "Decisions":
        """Return a copy for the topics in some columns, without rules, as a rule may name topics in other columns."""
        curves = None if self.calibration is None else self.calibration.of_topics(columns)
        promises = None if self.promises is None else self.promises.of_topics(columns)
        held_out = None if self.held_out is None else self.held_out.of_topics(columns)
        of_columns = replace(self, thresholds=self.thresholds[columns], calibration=curves, promises=promises)
        return replace(of_columns, held_out=held_out, rules=None)


def why_uncalibrated(strategy: str) -> tuple[str, str]:
    """Return why a model with this strategy has no calibration curves, and the remedy, as parts of a sentence."""
    if strategy == "zero":
        return "its recipe has the strategy 'zero'", "train it by one with another in [tags], such as 'probability'"
    return "it was trained on too few labelled documents", "train it on more"

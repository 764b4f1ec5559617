"""Draw an evaluation with matplotlib, by classes like scikit-learn's displays.

`from_evaluation`, or `from_predictions` for scores and labels, returns a display and draws it on the axes `ax_` of the
figure `figure_`. The display's numbers are attributes, and `plot` draws them again on other axes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError, install_hint
from textcat.evaluation.evaluation import Evaluation, ScoredDocuments, evaluate_scores
from textcat.report import figures

_Display = TypeVar("_Display", bound="_Drawn")


class _Drawn:
    """The base class of displays: build a display from an evaluation, or from scores and labels, and draw it."""

    ax_: Any = None  # matplotlib's axes of the display
    figure_: Any = None
    _measured: Callable[..., dict[str, Any]]  # function from an evaluation and options to the arguments of a display
    _draw: Callable[..., None]  # function that draws on axes

    @classmethod
    def from_evaluation(cls: type[_Display], evaluation: Evaluation, *, ax: Any = None, **options: Any) -> _Display:
        """Build a display from an evaluation, and draw it.

        Parameters
        ----------
        evaluation : Evaluation
            With the scores that it was computed from, as `textcat.evaluate` returns it.
        ax : matplotlib axes, optional
            By default those of a new figure.
        **options
            Further options of the display.

        Returns
        -------
        display

        Raises
        ------
        TextcatError
            If the evaluation has no scores: it was read from a model's folder, or has 1,000 topics or more.
        """
        if evaluation.scored is None:
            raise TextcatError(
                "Pictures of topics are drawn from their scores, and this evaluation has none: "
                "evaluate on test documents a model of fewer than 1,000 topics."
            )
        display = cls(**cls._measured(evaluation, evaluation.scored, **options))
        display.plot(ax)
        return display

    @classmethod
    def from_predictions(
        cls: type[_Display],
        Y: Any,
        scores: ArrayLike,
        topics: Sequence[str],
        train_sizes: ArrayLike,
        *,
        bands: str | Iterable[str] | None = None,
        threshold: ArrayLike = 0.0,
        ax: Any = None,
        **options: Any,
    ) -> _Display:
        """Build a display from scores and labels of documents, and draw it.

        Parameters
        ----------
        Y, scores, topics, train_sizes, threshold
            As in `textcat.evaluate_scores`.
        bands : str or iterable of str, optional
            As `spec` in `textcat.evaluate_scores`.
        ax, **options
            As for `from_evaluation`.

        Returns
        -------
        display
        """
        measured = evaluate_scores(
            scores, Y, topics, train_sizes, int(np.sum(train_sizes)), spec=bands, threshold=threshold
        )
        return cls.from_evaluation(measured, ax=ax, **options)

    def plot(self: _Display, ax: Any = None, **style: Any) -> _Display:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default those of a new figure.
        **style
            Options of matplotlib's `plot`; for histograms, options of `stairs`; for points, options of `scatter`.

        Returns
        -------
        display
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise TextcatError(f"A picture needs matplotlib: {install_hint('pictures')}.") from error
            ax = pyplot.subplots(layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax, **style)
        return self


@dataclass(eq=False, repr=False)
class PrecisionRecallBands(_Drawn):
    """Draw precision against recall, with a curve for each band (set of topics).

    The interpolated precision of a topic at a level of recall is its highest precision at this or a higher recall. The
    curve of a band is the mean of its topics' interpolated precision.

    Call `from_evaluation` or `from_predictions`.

    Parameters
    ----------
    recall : ndarray of shape (n_levels,)
        Levels of recall, from 0 to 1.
    precision : mapping of str to ndarray of shape (n_levels,)
        By band, the interpolated precision at each level.
    average_precision : mapping of str to float
        The mean average precision (MAP) of each band, for the legend.
    """

    recall: NDArray[np.float64]
    precision: Mapping[str, NDArray[np.float64]]
    average_precision: Mapping[str, float]

    @classmethod
    def _measured(cls, evaluation: Evaluation, scored: ScoredDocuments) -> dict[str, Any]:
        means = {row.band: row["macro_average_precision"] for row in evaluation.bands}
        curves = figures.band_curves(scored)
        means_of_curves = {band: means[band] for band in curves}
        return {"recall": figures.LEVELS, "precision": curves, "average_precision": means_of_curves}

    def _draw(self, ax: Any, **line: Any) -> None:
        for band, precision in self.precision.items():
            ax.plot(self.recall, precision, **{"label": f"{band} (MAP {self.average_precision[band]:.3f})", **line})
        ax.set(xlabel="Recall", ylabel="Precision", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        ax.legend(loc="lower left")


@dataclass(eq=False, repr=False)
class CalibrationBands(_Drawn):
    """Draw a calibration curve for each band (set of topics): the fraction of correct topics by their probability.

    All pairs of a document and a topic of the band are used; a pair is correct if the document has the topic.

    Call `from_evaluation` or `from_predictions`, with the options ``calibration=tagger.decisions.calibration`` and
    `n_bins`, 10 by default.

    Parameters
    ----------
    predicted, right, documents : mapping of str to ndarray of shape (n_bins,)
            For each band, arrays with a value for each bin of probabilities that is not empty: the mean probability
            (`predicted`), the fraction of correct topics (`right`), and the number of probabilities (`documents`).
    """

    predicted: Mapping[str, NDArray[np.float64]]
    right: Mapping[str, NDArray[np.float64]]
    documents: Mapping[str, NDArray[np.intp]]

    @classmethod
    def _measured(
        cls, _: Evaluation, scored: ScoredDocuments, *, calibration: Calibration | None = None, n_bins: int = 10
    ) -> dict[str, Any]:
        if calibration is None:
            raise TextcatError("Calibration is drawn of probabilities: give calibration=tagger.decisions.calibration.")
        probabilities, labels = calibration.probabilities(scored.scores), scored.relevant.toarray() > 0
        columns: dict[str, dict[str, Any]] = {"predicted": {}, "right": {}, "documents": {}}
        for band in scored.bands:
            topics = list(band.topics)
            bins = figures.reliability(probabilities[:, topics].ravel(), labels[:, topics].ravel(), n_bins)
            for column, values in zip(columns.values(), zip(*bins, strict=True), strict=True):
                column[band.name] = np.array(values)
        return columns

    def _draw(self, ax: Any, **line: Any) -> None:
        ax.plot([0, 1], [0, 1], ":", color="grey", label="perfectly calibrated")
        for band, predicted in self.predicted.items():
            ax.plot(predicted, self.right[band], **{"marker": "o", "label": band, **line})
        ax.set(xlabel="Mean predicted probability", ylabel="Fraction of positives")
        ax.legend(loc="upper left")


@dataclass(eq=False, repr=False)
class ScoreHistogram(_Drawn):
    """Draw histograms of the scores for a topic: of documents that have the topic, and of documents that lack it.

    Call `from_evaluation` or `from_predictions`, with the options `topic` (its id) and `n_bins`, 30 by default. Counts
    are on a logarithmic scale.

    Parameters
    ----------
    topic : str
    edges : ndarray of shape (n_bins + 1,)
        Scores at which the bins begin and end.
    positives, negatives : ndarray of shape (n_bins,)
        Number of documents with and without the topic in each bin.
    threshold : float or None
        The topic's threshold, drawn as a line; None draws no line.
    """

    topic: str
    edges: NDArray[np.float64]
    positives: NDArray[np.intp]
    negatives: NDArray[np.intp]
    threshold: float | None = None

    @classmethod
    def _measured(
        cls, evaluation: Evaluation, scored: ScoredDocuments, *, topic: str = "", n_bins: int = 30
    ) -> dict[str, Any]:
        names = [row.topic for row in evaluation.topics]
        if topic not in names:
            raise TextcatError(f"The evaluation has no topic {topic!r}: give topic=, one of {', '.join(names[:9])}, …")
        j = names.index(topic)
        is_positive = scored.relevant[:, [j]].toarray()[:, 0] > 0
        drawn = figures.score_histogram(scored.scores[:, j], is_positive, n_bins)
        edges, counts = np.linspace(drawn.low, drawn.high, n_bins + 1), drawn._asdict()
        facts = {"topic": topic, "edges": edges, "threshold": evaluation.topics[j].threshold}
        return facts | {name: counts[name] for name in ("positives", "negatives")}

    def _draw(self, ax: Any, **bar: Any) -> None:
        for counts, label in ((self.negatives, f"not {self.topic}"), (self.positives, self.topic)):
            ax.stairs(counts, self.edges, **{"fill": True, "alpha": 0.6, "label": label, **bar})
        if self.threshold is not None:
            ax.axvline(self.threshold, color="black", linestyle="--", label="threshold")
        ax.set(xlabel="Score", ylabel="Documents", yscale="symlog")
        ax.legend()


@dataclass(eq=False, repr=False)
class PrecisionBySize(_Drawn):
    """Draw the average precision of each topic against its number of training documents.

    Call `from_evaluation` or `from_predictions`.

    Parameters
    ----------
    topics : sequence of str
        Topics that have a positive document.
    train_sizes, average_precision : ndarray of shape (n_topics,)
        Number of training documents and average precision of each topic.
    """

    topics: Sequence[str]
    train_sizes: NDArray[Any]
    average_precision: NDArray[np.float64]

    @classmethod
    def _measured(cls, evaluation: Evaluation, _: ScoredDocuments) -> dict[str, Any]:
        rows = [row for row in evaluation.topics if row.average_precision is not None]
        return {
            "topics": [row.topic for row in rows],
            "train_sizes": np.array([row.train_positives for row in rows]),
            "average_precision": np.array([row.average_precision for row in rows], np.float64),
        }

    def _draw(self, ax: Any, **points: Any) -> None:
        ax.scatter(np.maximum(self.train_sizes, 1), self.average_precision, **{"alpha": 0.6, **points})
        ax.set(xlabel="Training documents", ylabel="Average precision", xscale="log", ylim=(-0.02, 1.02))

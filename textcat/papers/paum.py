"""The PAUM paper: tables 1 to 4, the choice of margins, and Figure 2.1.

Y. Li, H. Zaragoza, R. Herbrich, J. Shawe-Taylor, J. Kandola, The Perceptron Algorithm with Uneven Margins, ICML 2002.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from textcat import read_recipe
from textcat.base.errors import TextcatError
from textcat.base.folds import assign_folds
from textcat.evaluation.bands import choose_bands
from textcat.evaluation.metrics import average_precisions, macro_average
from textcat.margin import learners
from textcat.margin.learners import prevalence_tau
from textcat.margin.probabilities import out_of_fold_scores
from textcat.margin.problems import Problem, Solution, rows_by_column
from textcat.margin.rules import ALMA, PA, PAM, PAUM, Rule
from textcat.margin.solve import solve
from textcat.papers import datasets
from textcat.papers.datasets import Dataset
from textcat.papers.experiments import (
    PUBLISHED,
    Experiment,
    Figure,
    Row,
    Settings,
    Task,
    draw_axes,
    read_experiment,
    time_call,
)
from textcat.papers.micra import HARD

if TYPE_CHECKING:
    from textcat.corpus.documents import Corpus

_PRINTED = PUBLISHED["paum"]

Rules = Rule | Sequence[Rule]  # one for all topics, or each topic's own
Printed = Mapping[str, Any]  # a paper's figures

SIGMA = 3.5  # of the Gaussian kernel of Table 1
N_ORDERS = 10  # random orders of the images
EPOCHS = {"1 epoch": 1, "3 epochs": 3, "convergence": 1000}

# ALMA(α) as Gentile (2001) writes it, with the B of his experiments: PA's test would be α = 1.
_ON_USPS: dict[str, Rule] = {
    "PA": PA(),
    **{f"PAM({tau:g})": PAM(tau) for tau in (0.2, 0.4)},
    **{f"ALMA({alpha:g})": ALMA(alpha, B=1 / alpha) for alpha in (0.9, 0.95)},
}


def kernels_of(images: Dataset) -> Dataset:
    """Return a data set whose rows are the kernels ``exp(-|x - x'|²/(2σ)²)`` of an image with all training images."""
    from sklearn.metrics.pairwise import rbf_kernel

    train, test = (X.toarray().astype(np.float32) for X in (images.X, images.X_test))
    gamma = 1 / (2 * SIGMA) ** 2
    return images._replace(X=rbf_kernel(train, gamma=gamma), X_test=rbf_kernel(test, train, gamma=gamma))


@cache
def kernels() -> Dataset:
    """Return the kernels (see `kernels_of`) of the data set USPS, which are computed only once."""
    return kernels_of(datasets.load("usps"))


def _digits_error(kernels: Dataset, outputs: np.ndarray) -> float:
    """Return the percentage of test images for which a wrong digit has the largest output."""
    return 100 * float(np.mean(np.unique(kernels.y)[outputs.argmax(axis=1)] != kernels.y_test))


def train_digits(kernels: Dataset, rule: Rule, max_epochs: int, seed: int, n_jobs: int) -> tuple[float, float]:
    """Train a perceptron per digit against all others, without bias or λ.

    Return the error on the test images in percent, and the mean over digits of the number of epochs.
    """
    problems = [
        Problem(np.flatnonzero(kernels.y == digit).astype(np.int32), rule, rho=0.0, max_epochs=max_epochs)
        for digit in np.unique(kernels.y)
    ]
    solutions = solve(kernels.X, problems, n_jobs=n_jobs, seed=seed, kernel="precomputed")
    alpha = np.zeros((len(kernels.y), len(solutions)), kernels.X.dtype)
    for digit, solution in enumerate(solutions):
        alpha[solution.support, digit] = solution.alpha
    return _digits_error(kernels, kernels.X_test @ alpha), float(np.mean([solution.n_epochs for solution in solutions]))


def digits_row(kernels: Dataset, name: str, printed: Sequence[float], n_jobs: int, n_orders: int = N_ORDERS) -> Row:
    """Train one of Table 1's perceptrons in random orders, and return its row, with means over the orders.

    It is trained for each number of epochs for which the paper prints a figure.
    """
    stages, seeds = list(EPOCHS.items())[: len(printed)], range(n_orders)
    rule = _ON_USPS[name]
    runs, seconds = time_call(
        lambda: np.array([[train_digits(kernels, rule, n, seed, n_jobs) for seed in seeds] for _, n in stages])
    )
    errors, epochs = runs[:, :, 0], runs[:, :, 1]
    means = zip(stages, errors.mean(axis=1).tolist(), printed, strict=True)
    figures = {f"{stage} %": Figure(error, expected, 2) for (stage, _), error, expected in means}
    if len(stages) == len(EPOCHS):
        figures["epochs"] = Figure(float(epochs[-1].mean()))
    spread = ", ".join(f"{deviation:.2f}" for deviation in errors.std(axis=1))
    return Row(name, figures, seconds, f"{name}: the standard deviation over orders is {spread}.")


def digits_svm_row(kernels: Dataset, printed: Sequence[float]) -> Row:
    """Train LIBSVM with a hard margin for each digit, and return its row of Table 1."""
    is_digit = kernels.y[:, None] == np.unique(kernels.y)
    (alpha, bias), seconds = time_call(_train_libsvm, kernels.X.astype(np.float64), is_digit, HARD)
    figures = {"convergence %": Figure(_digits_error(kernels, kernels.X_test @ alpha + bias), printed[-1], 2)}
    return Row("SVM", figures, seconds, "The paper takes its figure from Platt et al. (2000). Here: LIBSVM, C = 10⁵.")


def _train_libsvm(kernel: np.ndarray, labels: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Train LIBSVM on each column of labels; return coefficients, in the shape of `labels`, and biases."""
    from sklearn.svm import SVC

    alpha, bias = np.zeros(labels.shape), np.zeros(labels.shape[1])
    for k, column in enumerate(labels.T):
        machine = SVC(C=C, kernel="precomputed").fit(kernel, column)
        alpha[machine.support_, k], bias[k] = machine.dual_coef_[0], machine.intercept_[0]
    return alpha, bias


def _usps_rows(name: str, settings: Settings) -> list[Row]:
    printed = _PRINTED["table1"][name]
    if name == "SVM":
        return [digits_svm_row(kernels(), printed)]
    return [digits_row(kernels(), name, printed, settings.n_jobs)]


# The paper's numbers of terms. Which ones it leaves out it does not say; here, those in the fewest training documents.
_N_TERMS = {"reuters21578": 20_000, "rcv1": 120_000}
_REUTERS = "reuters21578"
GRAM_ROWS = 512
RULES: dict[str, Rule] = {"PA": PA(), "PAM(1)": PAM(1), "PAUM(-1,1)": PAUM(-1, 1), "PAUM(1,50)": PAUM(1, 50)}
_CHOSEN = "PAUM(1,50)"
_SVM_C = 1.0


@dataclass(frozen=True, eq=False)
class CorpusVectors:
    """A corpus as the paper's vectors, with labels; a vector has entries tf·log(m/df), scaled to length 1."""

    topics: tuple[str, ...]
    train: sp.csr_matrix  # (n_documents, n_terms), float32
    test: sp.csr_matrix
    train_labels: sp.csc_matrix  # (n_documents, n_topics), 0/1
    test_labels: sp.csc_matrix

    @classmethod
    def of(cls, corpus: "Corpus", n_terms: int) -> "CorpusVectors":
        """Return the vectors of a corpus, with the `n_terms` terms that occur in the most training documents."""
        recipe = read_recipe("paum-2002")
        features = recipe.with_values({"features": {"max_features": n_terms}}).make_features()
        train, test = features.fit_transform(corpus.train), features.transform(corpus.test)
        return cls(corpus.topics, train, test, corpus.labels(corpus.train), corpus.labels(corpus.test))

    @cached_property
    def positives(self) -> list[np.ndarray]:
        """Positions of the training documents that have each topic, int32."""
        return rows_by_column(self.train_labels)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of training documents of each topic."""
        return np.diff(self.train_labels.indptr)

    def solve(self, rules: Rules, n_jobs: int, lambda_: float = 1.0, max_epochs: int = 1000) -> list[Solution]:
        """Train a ranker per topic, by one rule for all or a rule for each.

        The constant coordinate of the bias is ρ = 1, which is the paper's R for unit vectors.
        """
        rule_of = [rules] * len(self.topics) if isinstance(rules, Rule) else rules
        problems = [
            Problem(positives, rule, lambda_=lambda_, max_epochs=max_epochs)
            for positives, rule in zip(self.positives, rule_of, strict=True)
        ]
        return solve(self.train, problems, n_jobs=n_jobs)

    def scores(self, rows: sp.csr_matrix, solutions: Sequence[Solution]) -> np.ndarray:
        """Score documents by each solution: an array of shape (n_documents, n_solutions)."""
        weights = np.array([solution.weights for solution in solutions]).T.copy()
        return rows @ weights + np.array([solution.bias for solution in solutions], weights.dtype)

    def quality(self, solutions: Sequence[Solution]) -> np.ndarray:
        """Return the average precision of each topic on the test documents; nan for a topic that no document has."""
        return average_precisions(self.test_labels, self.scores(self.test, solutions))

    def figures(self, quality: ArrayLike, sparsity: ArrayLike, published: Printed | None = None) -> dict[str, Figure]:
        """Return the mean average precision and support of each band (set of topics), next to the published ones."""
        return {
            f"{name} {band.name}": Figure(
                macro_average(values, band.topics).mean, published[name.lower()][k] if published else None, digits
            )
            for name, values, digits in (("MAP", quality, 3), ("sparsity", sparsity, 0))
            for k, band in enumerate(choose_bands(self.topics, self.sizes))
        }


@lru_cache(maxsize=1)
def corpus_vectors(name: str) -> CorpusVectors:
    """Return the vectors of a corpus of the paper; the last corpus is cached."""
    return CorpusVectors.of(datasets.corpus(name), _N_TERMS[name])


def support_sizes(solutions: Sequence[Solution]) -> np.ndarray:
    """Return the number of support documents of each solution, the paper's sparsity."""
    return np.array([len(solution.support) for solution in solutions])


def gram(rows: sp.csr_matrix) -> np.ndarray:
    """Return the inner products of all pairs of rows.

    They are computed block by block, as one sparse product would take twice the memory.
    """
    products = np.empty((rows.shape[0], rows.shape[0]))
    for start in range(0, rows.shape[0], GRAM_ROWS):
        block = slice(start, start + GRAM_ROWS)
        products[:, block] = rows @ np.ascontiguousarray(rows[block].toarray().T)
    return products


def perceptron_row(
    label: str, vectors: CorpusVectors, rules: Rules, n_jobs: int, printed: Printed | None = None, note: str = ""
) -> Row:
    """Train and test a perceptron per topic, and return a row of tables 2 and 3.

    `rules` is one rule for all topics, or a rule for each; `printed` has the paper's figures.
    """
    solutions, seconds = time_call(lambda: vectors.solve(rules, n_jobs))
    return Row(label, vectors.figures(vectors.quality(solutions), support_sizes(solutions), printed), seconds, note)


def _perceptron_rows(vectors: CorpusVectors, printed: Printed, n_jobs: int, names: Iterable[str] = RULES) -> list[Row]:
    return [perceptron_row(name, vectors, RULES[name], n_jobs, printed[name]) for name in names]


def _svm_rows(vectors: CorpusVectors, printed: Printed, n_jobs: int) -> list[Row]:
    """Train and test LIBSVM, and return its row of tables 2 and 3.

    The time includes the kernel matrix, which is computed once for all topics.
    """
    (weights, support), seconds = time_call(train_svm, vectors, _SVM_C)
    quality = average_precisions(vectors.test_labels, vectors.test @ weights)  # a bias does not change the order
    note = f"LIBSVM with C = {_SVM_C:g}, which the paper does not give."
    return [Row("SVM", vectors.figures(quality, support, printed["SVM"]), seconds, note)]


def train_svm(vectors: CorpusVectors, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Train a support vector machine per topic; return their weights and their numbers of support vectors.

    The weights are of shape (n_terms, n_topics).
    """
    rows = vectors.train.astype(np.float64)
    alpha, _ = _train_libsvm(gram(rows), vectors.train_labels.toarray(), C)
    return rows.T @ alpha, np.count_nonzero(alpha, axis=0)


# Epochs after which PA is given up on a topic. It needs at most 143 on a topic of Reuters-21578 that is separable.
_PATIENCE = 1000
_N_SEPARABLE = 77  # topics, in the paper


def separability_rows(vectors: CorpusVectors, printed: Printed, n_jobs: int) -> list[Row]:
    """Return the rows of Table 4: training with λ = 0 and with λ = 1, on the topics on which PA converges with λ = 0.

    λ is the weight of a coordinate that each document has for itself alone, and PA is the plain perceptron.
    `printed` has the figures that the paper prints.
    """
    runs = [time_call(lambda: vectors.solve(PA(), n_jobs, lambda_, _PATIENCE)) for lambda_ in (0, 1)]  # noqa: B023
    converged = np.array([solution.converged for solution in runs[0][0]])
    separable = np.flatnonzero(converged).tolist()
    note = _inseparable_note(vectors, np.flatnonzero(~converged).tolist())
    rows = []
    for lambda_, (solutions, seconds) in enumerate(runs):
        expected = printed[f"lambda={lambda_}"]
        figures = {
            "topics": Figure(len(separable), _N_SEPARABLE),
            "MAP": Figure(macro_average(vectors.quality(solutions), separable).mean, expected["map"], 3),
            "sparsity": Figure(macro_average(support_sizes(solutions), separable).mean, expected["sparsity"]),
        }
        rows.append(Row(f"λ = {lambda_}", figures, seconds, note))
    return rows


def _inseparable_note(vectors: CorpusVectors, topics: Sequence[int]) -> str:
    """Return a note that names the topics that are proven inseparable, and those for which there is no proof."""
    contradicted, note = contradicted_topics(vectors), ""
    if proven := ", ".join(vectors.topics[topic] for topic in topics if topic in contradicted):
        note = f"Inseparable: {proven}. For each of them there are two training documents of the same vector, "
        note += "one in the topic and one not."
    if open_ := ", ".join(vectors.topics[topic] for topic in topics if topic not in contradicted):
        note += f" PA did not converge in {_PATIENCE} epochs on {open_}, which proves nothing."
    return note.lstrip()


def contradicted_topics(vectors: CorpusVectors) -> set[int]:
    """Return the topics that some, but not all, of the documents with the same vector (equal to the bit) have.

    No weights can separate the positives of such a topic from its negatives.
    """
    rows, alike = vectors.train, defaultdict(list)
    for start, end, labels in zip(rows.indptr, rows.indptr[1:], vectors.train_labels.toarray() > 0, strict=False):
        alike[rows.indices[start:end].tobytes(), rows.data[start:end].tobytes()].append(labels)
    mixed = [np.any(labels, axis=0) & ~np.all(labels, axis=0) for labels in alike.values()]
    return set(np.flatnonzero(np.any(mixed, axis=0)).tolist())


_Pair = tuple[float, float]  # τ₋, τ₊

_N_FOLDS = 10
_MIN_POSITIVES = 40  # that a topic must have to be cross-validated
N_SHOWN = 10

# τ₊ = S/(1 + exp(-κ·c)): with κ = 0 all topics would have τ₊ = 50, as in PAUM(1,50).
_TAU_NEG = -0.5
_SCALE = 100.0
_KAPPA = (-50.0, -10.0, 10.0, 50.0)


def margin_grid(printed: Printed) -> list[_Pair]:
    """Return the pairs of margins that the paper tries."""
    return list(product(printed["tau_neg"], printed["tau_pos"]))


def pair_name(pair: _Pair) -> str:
    """Return the label of PAUM with a pair of margins, such as "PAUM(1,50)"."""
    return f"PAUM({pair[0]:g},{pair[1]:g})"


def cross_validate(
    vectors: CorpusVectors, pairs: Sequence[_Pair], n_folds: int, topics: Sequence[int], n_jobs: int
) -> np.ndarray:
    """Return each pair's average precision on held-out documents, averaged over folds: shape (n_pairs, n_topics).

    The idf of the vectors comes from all training documents, so that all problems share their rows.
    """
    labels = vectors.train_labels.tocsc()[:, topics]
    fold_of = assign_folds(vectors.train_labels, n_folds, seed=0)
    quality = np.empty((len(pairs), n_folds, len(topics)))
    for k, (tau_neg, tau_pos) in enumerate(pairs):
        learner = learners.PAUM(tau_neg=tau_neg, tau_pos=tau_pos, lambda_=1.0, n_jobs=n_jobs)
        problems = learner.topic_problems(vectors.train, labels)
        scores = out_of_fold_scores(learner, vectors.train, problems, fold_of, n_jobs=n_jobs)
        for fold in range(n_folds):
            quality[k, fold] = average_precisions(labels[fold_of == fold], scores[fold_of == fold])
    return np.nanmean(quality, axis=1)


def grid_rows(vectors: CorpusVectors, printed: Printed, n_jobs: int, least: int = _MIN_POSITIVES) -> list[Row]:
    """Rank pairs of margins by cross-validation on topics of `least` or more positives.

    Return a row for all pairs, and rows of the best pairs and of the paper's.
    """
    pairs, topics = margin_grid(printed), np.flatnonzero(vectors.sizes >= least).tolist()
    quality, seconds = time_call(lambda: cross_validate(vectors, pairs, _N_FOLDS, topics, n_jobs))
    n_trained = {"trained": Figure(len(pairs) * _N_FOLDS * len(topics))}
    best_first = np.argsort(-quality.mean(axis=1), kind="stable").tolist()
    chosen = pairs.index(tuple(printed["chosen"]))
    rows = [Row(f"{len(pairs)} pairs × {_N_FOLDS} folds × {len(topics)} topics", n_trained, seconds)]
    for k in dict.fromkeys([*best_first[:N_SHOWN], chosen]):
        behind = quality[best_first[0]] - quality[k]
        figures = {
            "place": Figure(1 + best_first.index(k)),
            "MAP": Figure(quality[k].mean(), digits=4),
            "behind the first": Figure(behind.mean(), digits=4),
            "its standard error": Figure(behind.std(ddof=1) / np.sqrt(len(topics)), digits=4),
        }
        rows.append(Row(pair_name(pairs[k]), figures, note="The paper chooses this pair." if k == chosen else ""))
    return rows


def prevalence_rows(vectors: CorpusVectors, printed: Printed, n_jobs: int) -> list[Row]:
    """Return a row of results for each κ; κ and a topic's fraction of positive documents determine its margin τ₊."""
    label, prevalence = f"τ₋ = {_TAU_NEG:g}, τ₊ from prevalence, κ = ", vectors.sizes / vectors.train.shape[0]
    taus = {kappa: prevalence_tau(prevalence, kappa, _SCALE) for kappa in _KAPPA}
    rules = {f"{label}{kappa:g}": [PAUM(_TAU_NEG, tau_pos) for tau_pos in tau] for kappa, tau in taus.items()}
    return [perceptron_row(name, vectors, of_topics, n_jobs) for name, of_topics in rules.items()]


def training_rows(vectors: CorpusVectors, printed: Printed, n_jobs: int) -> list[Row]:
    """Return rows for margins that are chosen by average precision on the training documents themselves."""
    # argmax takes the first of equal values, so the largest margins come first.
    pairs = sorted(margin_grid(printed), key=lambda pair: (pair[1], pair[0]), reverse=True)
    (quality, sparsity), seconds = time_call(lambda: trained_on(vectors, pairs, n_jobs))
    for_all = pairs[int(quality.mean(axis=1).argmax())]
    equals = quality == quality.max(axis=0)
    per_topic = {
        "the largest margins": equals.argmax(axis=0),
        "the sparsest ranker": np.where(equals, sparsity, np.inf).argmin(axis=0),
    }
    label = f"by training MAP, one pair for all: {pair_name(for_all)}"
    note = f"Training and ranking with {len(pairs)} pairs took {seconds:.1f} s."
    rows = [perceptron_row(label, vectors, PAUM(*for_all), n_jobs, note=note)]
    ties = int(np.sum(equals.sum(axis=0) > 1))
    note = f"On {ties} of {len(vectors.topics)} topics several pairs are equally good."
    for words, chosen in per_topic.items():
        label = f"by training AP, a pair per topic, of equals {words}"
        rows.append(perceptron_row(label, vectors, [PAUM(*pairs[k]) for k in chosen], n_jobs, note=note))
    return rows


def trained_on(vectors: CorpusVectors, pairs: Sequence[_Pair], n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
    """Train rankers by each pair of margins; return their average precision on training documents, and their sparsity.

    Both arrays have the shape (n_pairs, n_topics).
    """
    quality, sparsity = [], []
    for pair in pairs:
        solutions = vectors.solve(PAUM(*pair), n_jobs)
        quality.append(average_precisions(vectors.train_labels, vectors.scores(vectors.train, solutions)))
        sparsity.append(support_sizes(solutions))
    return np.array(quality), np.array(sparsity)


_TOPIC = "earn"

# The rules by their names in the picture: τ, or τ₋ and τ₊.
IN_PICTURE: dict[str, Rule] = {f"{tau:g}": PAM(tau) if tau else PA() for tau in (0, 0.1, 0.5, 1, 5)} | {
    f"({tau_neg},{tau_pos})": PAUM(tau_neg, tau_pos) for tau_neg, tau_pos in ((0, 1), (-1, 1), (1, 50))
}
_SPANNING = "SVM", "0", "0.5"


def plane_through(origin: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Return the plane through the tips of three unit vectors, as three columns: `origin`, and two unit axes.

    The axes are orthogonal; the first points from `origin` to `second`. The point (u, v) of the plane is the weight
    vector ``origin + u·axis1 + v·axis2``, with the bias as its last entry. Append 1 to a row, multiply it by the row's
    label, and let (c, a, b) be its product with the columns: the weight vector classifies the row correctly if
    ``c + a·u + b·v`` is positive.
    """
    axes, signs = np.linalg.qr(np.column_stack([second - origin, third - origin]))
    return np.column_stack([origin, axes * np.sign(np.diag(signs))])


def unit_weight_vectors(rows: sp.csr_array, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return weight vectors of length 1, bias last, by name: of LIBSVM with C = 1e5, and of each rule with λ = 0."""
    alpha, bias = _train_libsvm(gram(rows), y[:, None], HARD)
    vectors = {"SVM": np.append(rows.T @ alpha[:, 0], bias)}
    problems = [Problem.from_labels(y, rule) for rule in IN_PICTURE.values()]
    for name, solution in zip(IN_PICTURE, solve(rows, problems), strict=True):
        assert solution.weights is not None
        vectors[name] = np.append(solution.weights, solution.bias)
    # With a negative τ₋ there may be no update at all.
    return {name: vector / (np.linalg.norm(vector) or 1) for name, vector in vectors.items()}


def region_corners(lines: np.ndarray) -> np.ndarray:
    """Return the corners of the region within |u|, |v| ≤ 2 where ``c + a·u + b·v`` is positive for all lines.

    The lines are rows (c, a, b). The result has the shape (n, 2). The origin must be inside the region.
    """
    from scipy.spatial import HalfspaceIntersection

    # Unit vectors differ by no more than 2, so a region that is open ends there.
    frame = np.array([[2.0, 1, 0], [2.0, -1, 0], [2.0, 0, 1], [2.0, 0, -1]])
    return HalfspaceIntersection(-np.roll(np.vstack([lines, frame]), -1, axis=1), np.zeros(2)).intersections


def _draw(path: Path, points: Mapping[str, np.ndarray], lines: np.ndarray, y: np.ndarray) -> None:
    """Draw the points, and the lines that cross the frame: solid for negative documents, dotted for positive ones.

    `points` has the coordinates of each point by its name; `lines` has (c, a, b) of each line, and `y` its label.
    """
    inside = region_corners(lines)
    shown = np.vstack([inside, *points.values()])
    low, high = shown.min(axis=0) - 0.03, shown.max(axis=0) + 0.03
    size = high - low
    with draw_axes(path, 7, float(np.clip(7 * size[1] / size[0], 3, 10))) as axes:
        for (c, a, b), label in zip(lines, y, strict=True):
            if crosses(c, a, b, low, high):
                bounding = np.any(np.abs(c + inside @ (a, b)) <= 1e-9 * np.hypot(a, b))
                axes.axline(
                    (-c * a / (a * a + b * b), -c * b / (a * a + b * b)),
                    slope=-a / b if b else np.inf,
                    color="black" if bounding else "silver",
                    linestyle="-" if label < 0 else ":",
                    linewidth=1.0 if bounding else 0.4,
                )
        for name, (u, v) in points.items():
            axes.plot(u, v, "o", color="firebrick", markersize=4)
            axes.annotate(name, (u, v), (4, 4), textcoords="offset points", color="firebrick")
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])


def crosses(c: float, a: float, b: float, low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether the line ``c + a·u + b·v = 0`` crosses a frame, so that the frame has corners on both sides.

    `low` and `high` are the frame's lower left and upper right corner.
    """
    sides = [c + a * u + b * v for u in (low[0], high[0]) for v in (low[1], high[1])]
    return min(sides) < 0 < max(sides)


def figure_rows(vectors: CorpusVectors, topic: str, pictures: Path | None) -> list[Row]:
    """Train each rule on a topic; return a row per solution: its coordinates, its angle to LIBSVM's, and its margin.

    Given a folder, draw Figure 2.1 there. Raise TextcatError if the topic is inseparable.
    """
    rows, y = vectors.train.astype(np.float64), np.full(vectors.train.shape[0], -1)
    y[vectors.positives[vectors.topics.index(topic)]] = 1
    solutions, whole = unit_weight_vectors(rows, y), sp.csr_array(sp.hstack([rows, np.ones((len(y), 1))], format="csr"))
    if (y * (whole @ solutions["SVM"])).min() <= 0:
        raise TextcatError(f"The topic {topic!r} is inseparable, so it has no version space; choose another one.")
    plane = plane_through(*(solutions[name] for name in _SPANNING))
    points = {name: (vector - plane[:, 0]) @ plane[:, 1:] for name, vector in solutions.items()}
    if pictures is not None:
        _draw(pictures / "paum-figure-2.1.svg", points, y[:, None] * (whole @ plane), y)
    table = []
    for name, vector in solutions.items():
        outputs, (u, v) = y * (whole @ vector), points[name]
        cosine = np.clip(vector @ solutions["SVM"], -1, 1)
        figures = {
            "u": Figure(float(u), digits=3),
            "v": Figure(float(v), digits=3),
            "angle to SVM [°]": Figure(float(np.degrees(np.arccos(cosine))), digits=1),
            "10³ margin": Figure(1e3 * float(outputs.min()), digits=2),
            "training errors": Figure(int(np.sum(outputs <= 0))),
        }
        table.append(Row(name, figures))
    return table


def _experiment(name: str, corpus: str, table: str, **rows_by_task: Callable[..., list[Row]]) -> Experiment:
    def run(rows: Callable[..., list[Row]], settings: Settings) -> list[Row]:
        return rows(corpus_vectors(corpus), _PRINTED[table], settings.n_jobs)

    return read_experiment(name, (corpus,), *(Task(task, partial(run, rows)) for task, rows in rows_by_task.items()))


_ADAPTATION = {
    _CHOSEN: lambda vectors, _, n_jobs: _perceptron_rows(vectors, _PRINTED["table2"], n_jobs, [_CHOSEN]),
    "prevalence": prevalence_rows,
    "training MAP": training_rows,
}
EXPERIMENTS = (
    read_experiment("paum-table-1", ("usps",), *(Task(name, partial(_usps_rows, name)) for name in _PRINTED["table1"])),
    _experiment("paum-table-2", _REUTERS, "table2", perceptrons=_perceptron_rows, SVM=_svm_rows),
    _experiment("paum-table-3", "rcv1", "table3", perceptrons=_perceptron_rows, SVM=_svm_rows),
    _experiment("paum-table-4", _REUTERS, "table4", PA=separability_rows),
    _experiment("paum-grid", _REUTERS, "grid", grid=grid_rows),
    _experiment("paum-adaptation", _REUTERS, "grid", **_ADAPTATION),
    read_experiment(
        "paum-figure-2.1",
        (_REUTERS,),
        Task(_TOPIC, lambda settings: figure_rows(corpus_vectors(_REUTERS), _TOPIC, settings.pictures)),
    ),
)

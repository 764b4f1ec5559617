"""Check every compiled module on a small fixed input against a plain computation in Python or numpy.

The inputs are multiples of 1/8, so that most sums are exact in any order, and results can be compared to the bit. These
checks find a build that is broken on this machine; the tests of the repository compare far more.

``python -m textcat.doctor.kernels`` writes a line of JSON before and after each check. `check_kernels_apart` reads
them, so that a kernel that ends its process, as an instruction that the processor lacks does, is told like any other.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

LONGEST = 120  # until a kernel that does not end is given up; all together take about 2
_MASK = (1 << 64) - 1
# Of each rule: any in its range.
_PARAMETERS: dict[str, tuple[float, ...]] = {
    "PA": (0.5,),
    "PAM": (1.0, 0.5),
    "PAUM": (-0.5, 3.0),
    "TMargitron": (0.5, 0.7),
    "LMargitron": (0.5, 0.7),
    "MICRA": (1.0, 0.5, 0.1, 0.8),
    "CRAMMA": (0.1, 0.2, 0.5),
    "ALMA": (0.75,),
    "ROMMA": (0.3,),
    "PDM": (0.4,),
}
_TEXT = "Wheat exports didn't rise to 12.5 mln tonnes, the U.S. said (again). Gold: $388.50/oz -- up 3% in the U.K."


class KernelCheck(NamedTuple):
    """What came of the check of a compiled module: its name, the seconds it took, and what is wrong; "": nothing."""

    name: str
    seconds: float
    error: str


class _DiffersError(Exception):
    """Raised where a kernel's result is not that of the plain computation."""


def check_kernels() -> Iterator[KernelCheck]:
    """Check all compiled modules, and yield what came of it; an error in one does not keep the others from it."""
    for name, check in CHECKS.items():
        yield _checked(name, check)


def check_kernels_apart(command: Sequence[str] = (sys.executable, "-m", __name__)) -> list[KernelCheck]:
    """Return the results of `check_kernels`, run by another process; a check that ends that process is told, too."""
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST)
        output, fate = ended.stdout, f"the process ended with code {ended.returncode}"
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        fate = f"it did not end within {LONGEST} seconds"
    checks, begun = [], ""
    for line in output.splitlines():
        value = json.loads(line)
        if isinstance(value, str):
            begun = value
        else:
            checks.append(KernelCheck(*value))
    missing = [name for name in CHECKS if name not in {check.name for check in checks}]
    error_of = {name: fate if name == begun else f"not checked, as {fate} before" for name in missing}
    return checks + [KernelCheck(name, 0.0, error) for name, error in error_of.items()]


def main() -> None:
    """Check all compiled modules; write the name of each before its check, and what came of it afterwards."""
    for name, check in CHECKS.items():
        print(json.dumps(name), flush=True)
        print(json.dumps(_checked(name, check)), flush=True)


def _checked(name: str, check: Callable[[], None]) -> KernelCheck:
    start, error = time.perf_counter(), ""
    try:
        import_module(f"textcat.{name}")
        check()
    except _DiffersError as differs:
        error = str(differs)
    except ImportError as missing:
        error = f"cannot be imported ({missing})"
    except Exception as other:  # whatever is broken is to be told, not raised
        error = f"ends in an error ({type(other).__name__}: {other})"
    return KernelCheck(name, time.perf_counter() - start, error)


def _expect(what: str, result: Any, expected: Any, tolerance: float = 0.0) -> None:
    """Raise an error unless a result is as expected: to the bit without a tolerance, as a sum need not be."""
    result, expected = np.asarray(result), np.asarray(expected)
    if result.shape != expected.shape:
        raise _DiffersError(f"{what} has another shape than by the plain computation")
    close = np.isclose(result, expected, tolerance, tolerance) if tolerance else result == expected
    if not np.all(close):
        raise _DiffersError(f"{what} differs from the plain computation")


def _matrix(n_rows: int = 12, n_columns: int = 9) -> np.ndarray:
    i, j = np.indices((n_rows, n_columns))
    return np.where((i + 2 * j) % 3, ((7 * i + 11 * j) % 13 - 6) / 8, 0.0)


def _csr(X: np.ndarray, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = sparse.csr_matrix(X.astype(dtype))
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data


# --- features --------------------------------------------------------------------------------------------------------


def _check_tokens() -> None:
    import spacy

    from textcat.features.tokens import Tokens

    expected = spacy.blank("en")(_TEXT)
    tokens = Tokens()
    if tokens.tokenize(_TEXT) != [token.text for token in expected]:
        raise _DiffersError("the tokens of a text differ from spaCy's")
    terms = [token.lower_ for token in expected if token.is_alpha and not token.is_stop]
    if [located.term for located in tokens.locate_tokens([_TEXT])[0]] != terms:
        raise _DiffersError("the terms of a text differ from spaCy's tokens")


def _check_rows() -> None:
    from textcat.features import fitting, rows, steps

    parts, ends = np.array([1, 2], np.int64), np.array([3, 5], np.int64)
    ids, counts = np.array([0, 1, 2, 1, 2], np.int32), np.array([1, 2, 3, 4, 1], np.int32)
    texts, spaces = np.array([0, 1], np.int32), np.zeros(2, np.int32)
    terms, ngrams, idf = np.array([[2, 0, 1]], np.int32), np.zeros((1, 0), np.int32), np.array([0.5, 1.0, 2.0])
    data, columns, nothing = np.zeros(5), np.zeros(5, np.int32), np.zeros(0)
    fixed = (np.ones(2), nothing, 1.0, nothing, terms, ngrams, idf, False, data, columns)
    _expect("rows: their ends", steps.rows(parts, ends, ids, counts, texts, spaces, *fixed), [3, 5])
    expected = np.array([[2 * 0.5, 3 * 1.0, 1 * 2.0], [4 * 0.5, 1 * 1.0, 0.0]])
    expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
    _expect("rows: their columns", columns, [0, 1, 2, 0, 1])
    _expect("rows: their entries", data, [*expected[0], *expected[1, :2]], 1e-12)
    in_documents = rows.document_frequencies(parts, ends, ids, texts, spaces, terms, ngrams, 3)
    _expect("document frequencies", in_documents, [2, 2, 1])
    _expect("lengths of texts", rows.text_lengths(ends, counts), [6, 5])
    keys = fitting.character_keys(["ab", "b"], np.array([0, 1], np.int64), 0, 1)
    _expect("keys of characters", keys, np.array([0x6162 << 48, 0x62 << 56], np.uint64))


# --- margin ----------------------------------------------------------------------------------------------------------


def _plain_paum(
    X: np.ndarray, y: np.ndarray, tau_neg: float, tau_pos: float, epochs: int
) -> tuple[np.ndarray, float, int]:
    """Return weights, bias and the number of updates of PAUM, one row after the other."""
    w, bias, updates = np.zeros(X.shape[1]), 0.0, 0
    for _ in range(epochs):
        before = updates
        for x, label in zip(X, y, strict=True):
            if label * (x @ w + bias) <= (tau_pos if label > 0 else tau_neg):
                w, bias, updates = w + label * x, bias + label, updates + 1
        if updates == before:
            break
    return w, bias, updates


def _check_primal() -> None:
    from textcat.margin import primal
    from textcat.margin.problems import Problem
    from textcat.margin.rules import PAUM
    from textcat.margin.solve import solve

    X = _matrix()
    labels = [np.where((np.arange(12) * k) % 5 < 2, 1, -1) for k in range(1, 18)]  # more than the lanes of a block
    for dtype in (np.float32, np.float64):
        problems = [Problem.from_labels(y, PAUM(0.5, 3.0), max_epochs=8) for y in labels]
        for lanes in (16, 1):
            for y, solution in zip(
                labels, solve(sparse.csr_array(X.astype(dtype)), problems, lanes=lanes), strict=True
            ):
                w, bias, updates = _plain_paum(X, y, 0.5, 3.0, 8)
                _expect("the number of updates", solution.n_updates, updates)
                _expect("a weight", solution.weights, w)
                _expect("a bias", solution.bias, bias)
    arrays = _csr(X, np.float64)
    _expect("products of rows", primal.dots(*arrays, [3, 0], np.arange(9) / 8), X[[3, 0]] @ (np.arange(9) / 8))


def _check_dual() -> None:
    from textcat.margin.problems import Problem
    from textcat.margin.rules import PAUM
    from textcat.margin.solve import solve

    X, y = _matrix(), np.where(np.arange(12) * 3 % 5 < 2, 1, -1)
    problem = Problem.from_labels(y, PAUM(0.5, 3.0), max_epochs=8)
    (solution,) = solve(X, [problem], kernel="linear")
    w, bias, updates = _plain_paum(X, y, 0.5, 3.0, 8)
    _expect("the number of updates", solution.n_updates, updates)
    _expect("a bias", solution.bias, bias)
    _expect("the sum of the coefficients times the rows", solution.alpha @ X[solution.support], w)


def _check_rules() -> None:
    from textcat.margin import rules
    from textcat.margin.problems import Problem
    from textcat.margin.solve import solve

    rule = rules.PAUM(1.0, 50.0)
    found = [rule.threshold(1), rule.threshold(-1), *rule.step(0.0, 1.0)]
    _expect("thresholds and step of PAUM", found, [50.0, 1.0, 1.0, 1.0])
    X, y = _matrix(), np.where(np.arange(12) * 3 % 5 < 2, 1, -1)
    for name, parameters in _PARAMETERS.items():
        problem = Problem.from_labels(y, rules.RULES[name](*parameters), max_epochs=5)
        (primal,), (dual,) = solve(sparse.csr_array(X), [problem]), solve(X, [problem], kernel="linear")
        _expect(f"{name} in the dual form: the number of updates", dual.n_updates, primal.n_updates)
        _expect(f"{name} in the dual form: the bias", dual.bias, primal.bias, 1e-9)
    if set(_PARAMETERS) != set(rules.RULES):
        raise _DiffersError("the list of rules differs from that of the check")


def _check_folds() -> None:
    from textcat.margin.primal import N_FOLDS, leave_out_folds

    X, lambda_, rho, n = _matrix(), 0.5, 1.0, 12
    fold, label = np.arange(n) % (N_FOLDS + 1) - 1, np.where(np.arange(n) % 3, -1.0, 1.0)
    alpha, threshold, order = np.arange(n) % 4 / 2.0, 1.0 + np.arange(n) % 2, np.arange(n)[::-1].copy()
    K = X @ X.T + rho**2
    score = K @ (alpha * label)

    def scores_without(number: int) -> np.ndarray:
        a, f = np.where(fold == number, 0.0, alpha), K @ (np.where(fold == number, 0.0, alpha) * label)
        for i in order:
            step = (threshold[i] - label[i] * f[i] - lambda_ * a[i]) / (K[i, i] + lambda_)
            new = 0.0 if fold[i] == number else max(a[i] + step, 0.0)
            f, a[i] = f + K[:, i] * label[i] * (new - a[i]), new
        return f

    whole = scores_without(N_FOLDS)
    expected = [scores_without(number)[i] - whole[i] if number >= 0 else 0.0 for i, number in enumerate(fold)]
    work = np.zeros((X.shape[1], N_FOLDS + 1))
    settings = (order, lambda_, rho, 1, 0.0, work)
    arrays = _csr(X, np.float64)
    changes, _ = leave_out_folds(*arrays, np.arange(n), fold, label, threshold, alpha, score, *settings)
    _expect("scores without a fold", changes, expected, 1e-9)


# --- models and evaluation -------------------------------------------------------------------------------------------


def _stable_top(scores: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def _check_product() -> None:
    from textcat.model import selection, storage, weights

    X, W = _matrix(), _matrix(9, 21)
    bias = np.arange(21, dtype=np.float32) / 8
    expected, rows, (starts, topics, values) = X @ W + bias, _csr(X), _csr(W)
    _expect("products with dense weights", weights.product(*rows, W.astype(np.float32), bias), expected)
    _expect("products with sparse weights", weights.sparse_product(*rows, starts, topics, values, bias), expected)
    best, scores = selection.sparse_top(*rows, starts, topics, values, bias, 4)
    _expect("the highest topics", best, _stable_top(expected, 4))
    _expect("the highest scores", scores, np.take_along_axis(expected, best, axis=1))
    _expect("the highest topics of scores", selection.highest(expected.astype(np.float32), 4)[0], best)
    sound = storage.are_rows(starts, topics, 21), storage.are_rows(starts, topics, int(topics.max()))
    _expect("whether arrays are rows", sound, (True, False))


def _check_shortlist() -> None:
    from textcat.model import related, shortlist

    X, W = _matrix(), _matrix(9, 21)
    products, rows, (starts, topics, values) = X @ W, _csr(X), _csr(W)
    listed = shortlist.nearest(*rows, starts, topics, values, 21, 4)
    for found, row in zip(listed, products, strict=True):
        best = [topic for topic in _stable_top(row[np.newaxis], 4)[0] if row[topic] > 0]
        _expect("the nearest topics", found, [*sorted(best), *[-1] * (4 - len(best))])
    at = np.where(listed < 0, 0, np.take_along_axis(products, np.maximum(listed, 0), axis=1))
    _expect("products at topics", shortlist.products_at(*rows, starts, topics, values, 21, listed), at)
    begin, end, of_topics = shortlist.rows_by_topic(listed, 21, np.zeros(22, np.int64), np.zeros(0, np.int32))
    for topic in range(21):
        rows_of_topic = np.flatnonzero((listed == topic).any(axis=1))
        _expect("rows by topic", of_topics[begin[topic] : end[topic]], rows_of_topic)
    shares, of_document = _csr(np.array([[0.0, 0.5], [0.25, 0.0]])), np.array([[0, 1, -1]], np.int32)
    sums = related.related_sums(
        of_document, np.array([[1.0, -1.0, 0.0]], np.float32), np.ones(2), np.zeros(2), *shares, 2
    )
    chances = [1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(1.0))]
    _expect("sums of related topics", sums, [[chances[1] * 0.25, chances[0] * 0.5, 0.0]], 1e-6)


def _check_sigmoid() -> None:
    from textcat.base import calibration

    x = np.array([-700.0, -2.5, -0.0, 0.125, 3.0, 700.0])
    _expect("the logistic function", calibration.expit(x), [1 / (1 + math.exp(-value)) for value in x], 1e-15)
    z, target = np.array([-2.0, -1.0, 0.5, 1.0, 2.0, -0.5]), np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    a, b = calibration.fit_curve(z, target, np.zeros(6), np.ones(6))[:2]
    error = 1 / (1 + np.exp(-(a * z + b))) - target
    _expect("the slope of the loss of a fitted curve", [error @ z, error.sum()], [0.0, 0.0], 1e-5)


# --- texts that repeat others, and teaching --------------------------------------------------------------------------


def _mixed(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _fingerprint(text: str) -> int:
    fingerprint = 0
    for word in text.split():
        h = 0xCBF29CE484222325
        for byte in word.encode():
            h = ((h ^ byte) * 0x100000001B3) & _MASK
        fingerprint = _mixed((fingerprint + h) & _MASK)
    return fingerprint


def _check_sketches() -> None:
    from contextlib import closing

    from textcat.duplicates.groups import Groups, sketch_texts

    first, other = (" ".join(f"{stem}{i * i}" for i in range(60)) for stem in ("wheat", "gold"))
    texts = [first, other, first.upper() + "!", first.replace("wheat9 ", "corn "), "short"]
    sketches = sketch_texts([{"": text} for text in texts])
    plain = [_fingerprint(text.lower().rstrip("!")) for text in texts]
    _expect("fingerprints of texts", sketches["fingerprint"], np.array(plain, np.uint64))
    with closing(Groups()) as groups:
        assigned = groups.add(sketches)
    _expect("groups of texts", assigned.groups[:2], [0, 1])
    _expect("whether texts are kept", assigned.kept[:3], [True, True, False])
    _expect("groups of repeated texts", assigned.groups[2:4], [0, 0])


def _check_ranking() -> None:
    from textcat.teaching import ranker

    X, w = _matrix(), np.arange(9, dtype=np.float32) / 8
    arrays, scores = _csr(X), np.zeros(12, np.float32)
    for plain in (False, True):
        scores[:] = 0
        ranker.rows_times(*arrays, 0, 12, w, 0.5, scores, plain)
        _expect("products of rows", scores, X @ w + 0.5)
    sums = np.zeros(9)
    ranker.add_up(arrays[1], arrays[2], sums)
    _expect("sums of columns", sums, X.sum(axis=0))
    _check_solver(X, arrays)


def _check_solver(X: np.ndarray, arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Check that the solution of the L2-SVM satisfies the conditions of its minimum."""
    from textcat.teaching import ranker

    y, costs, v = np.where(np.arange(12) % 3, -1, 1).astype(np.int8), np.full(12, 0.5), np.zeros(9)
    ends = arrays[0][1:].copy()
    b, alphas, _, _ = ranker.solve(
        ends, *arrays[1:], y, costs, v, 0.0, 1.0, 1e-6, 10_000, 1, np.zeros(12), 0.0, 0.0, 0.0
    )
    _expect("weights of the ranker", v, (alphas * y) @ X, 1e-6)
    gradient = y * (X @ v + b) - 1 + alphas / (2 * costs)
    _expect("the gradient of the ranker", np.where(alphas > 0, gradient, np.minimum(gradient, 0)), np.zeros(12), 1e-4)


def _check_normal_forms() -> None:
    import unicodedata

    from textcat.base import normal_forms

    texts = ["cafe\u0301 \u212b", "\u0430\u0438\u0306", "\u1112\u1161\u11ab", "e\u0323\U0001f600"]
    for text in texts:
        form = unicodedata.normalize("NFC", text)
        _expect("normal form C", [normal_forms.nfc(text)], [form])
        starts, ends = normal_forms.origins(text)
        pieces = [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        _expect("the origins of normal form C", [unicodedata.normalize("NFC", piece) for piece in pieces], [*form])


CHECKS: dict[str, Callable[[], None]] = {
    "base._sigmoid": _check_sigmoid,
    "base.normal_forms": _check_normal_forms,
    "duplicates._sketches": _check_sketches,
    "features._rows": _check_rows,
    "features._token_cache": _check_tokens,
    "margin._dual": _check_dual,
    "margin._folds": _check_folds,
    "margin._primal": _check_primal,
    "margin.rules": _check_rules,
    "model._product": _check_product,
    "model._shortlist": _check_shortlist,
    "teaching._ranking": _check_ranking,
}
"""The check of each compiled module, by the module's name in the package."""


def broken_kernels(checks: Sequence[KernelCheck]) -> Iterator[str]:
    """Yield a sentence for each compiled module that is broken."""
    for check in checks:
        if check.error:
            yield f"The compiled module textcat.{check.name} is broken: {check.error}."


if __name__ == "__main__":
    main()

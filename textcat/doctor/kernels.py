"""Check every compiled module: compare a checksum of its results on a small fixed input with that of a sound build.

Compiled functions (kernels) give the same bits on every machine: fused multiply-add is disabled, and sums have a fixed
order. Results of exp, log and pow, whose last bit depends on the C library, are compared in millionths. These checks
find a build that is broken on this machine; the tests of the repository compare kernels with simple versions in Python.

``python -m textcat.doctor.kernels`` writes a line of JSON before and after each check. `check_kernels_apart` reads
the lines from another process: so it can name a kernel that crashed, for example by an instruction that the processor
lacks.
"""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

LONGEST = 120  # seconds after which a kernel is given up; all together take about 2
# Parameters of each rule, within their ranges.
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
    """The result of checking a compiled module: its name, the seconds it took, and the error, or ""."""

    name: str
    seconds: float
    error: str


def check_kernels_apart(command: Sequence[str] = (sys.executable, "-m", __name__)) -> list[KernelCheck]:
    """Check all compiled modules in another process, which a broken module may end; return the results."""
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
    """Check all compiled modules; write the name of each before its check, and the result after it."""
    for name in CHECKS:
        print(json.dumps(name), flush=True)
        print(json.dumps(check_kernel(name)), flush=True)


def check_kernel(name: str) -> KernelCheck:
    """Check a compiled module, and return the result."""
    start, error = time.perf_counter(), ""
    try:
        import_module(f"textcat.{name}")
        results, checksum = CHECKS[name]
        if checksum_of(results()) != checksum:
            error = "its results differ from those of a sound build"
    except ImportError as missing:
        error = f"cannot be imported ({missing})"
    except Exception as other:  # any exception is reported, and does not end the other checks
        error = f"ends in an error ({type(other).__name__}: {other})"
    return KernelCheck(name, time.perf_counter() - start, error)


def checksum_of(results: Iterator[Any]) -> str:
    """Return a checksum of numbers, texts and arrays; it depends on all digits of numbers, and not on their types."""
    values = [np.asarray(result).tolist() for result in results]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _millionths(values: Any) -> np.ndarray:
    return np.rint(np.asarray(values, np.float64) * 1e6).astype(np.int64)


def _matrix(n_rows: int = 12, n_columns: int = 9) -> np.ndarray:
    """Return a matrix of multiples of 1/8, whose sums and products are exact in any order."""
    i, j = np.indices((n_rows, n_columns))
    return np.where((i + 2 * j) % 3, ((7 * i + 11 * j) % 13 - 6) / 8, 0.0)


def _csr(X: np.ndarray, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = sparse.csr_matrix(X.astype(dtype))
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data


# --- the results of each module on a fixed input ---------------------------------------------------------------------


def _of_tokens() -> Iterator[Any]:
    import spacy

    from textcat.features.tokens import Tokens

    # by spaCy's rules, which may change with its version
    expected, tokens = spacy.blank("en")(_TEXT), Tokens()
    yield tokens.tokenize(_TEXT) == [token.text for token in expected]
    terms = [token.lower_ for token in expected if token.is_alpha and not token.is_stop]
    yield [located.term for located in tokens.locate_tokens([_TEXT])[0]] == terms


def _of_rows() -> Iterator[Any]:
    from textcat.features import fitting, rows, steps

    parts, ends = np.array([1, 2], np.int64), np.array([3, 5], np.int64)
    ids, counts = np.array([0, 1, 2, 1, 2], np.int32), np.array([1, 2, 3, 4, 1], np.int32)
    texts, spaces = np.array([0, 1], np.int32), np.zeros(2, np.int32)
    terms, ngrams, idf = np.array([[2, 0, 1]], np.int32), np.zeros((1, 0), np.int32), np.array([0.5, 1.0, 2.0])
    data, columns, nothing = np.zeros(5), np.zeros(5, np.int32), np.zeros(0)
    fixed = (np.ones(2), nothing, 1.0, nothing, terms, ngrams, idf, False, data, columns)
    yield from (steps.rows(parts, ends, ids, counts, texts, spaces, *fixed), columns, data)
    yield rows.document_frequencies(parts, ends, ids, texts, spaces, terms, ngrams, 3)
    yield rows.text_lengths(ends, counts)
    yield fitting.character_keys(["ab", "b"], np.array([0, 1], np.int64), 0, 1)
    vectors = (np.arange(5 * 37) * 7 % 255 - 127).astype(np.int8).reshape(5, 37)
    for dtype in (np.float32, np.float64):
        yield rows.vector_sums(*_csr(_matrix(), dtype), np.array([2, -1, 0, 4, 1, -1, 3, 3, 2], np.int32), vectors)
        yield rows.vector_products(vectors, _matrix(37, 3).astype(dtype))


def _of_primal() -> Iterator[Any]:
    from textcat.margin import primal
    from textcat.margin.problems import Problem
    from textcat.margin.rules import PAUM
    from textcat.margin.solve import solve

    X = _matrix()
    labels = [np.where((np.arange(12) * k) % 5 < 2, 1, -1) for k in range(1, 18)]  # more than the lanes of a block
    problems = [Problem.from_labels(y, PAUM(0.5, 3.0), max_epochs=8) for y in labels]
    dense = np.hstack([X, np.arange(12 * 64).reshape(12, 64) % 37 / 8 - 2])
    for rows in (X.astype(np.float32), X, dense.astype(np.float32)):
        for lanes in (16, 1):
            for solution in solve(sparse.csr_array(rows), problems, lanes=lanes):
                yield from (solution.n_updates, solution.weights, solution.bias)
    yield primal.dots(*_csr(X, np.float64), [3, 0], np.arange(9) / 8)


def _of_dual() -> Iterator[Any]:
    from textcat.margin.problems import Problem
    from textcat.margin.rules import PAUM
    from textcat.margin.solve import solve

    problem = Problem.from_labels(np.where(np.arange(12) * 3 % 5 < 2, 1, -1), PAUM(0.5, 3.0), max_epochs=8)
    (solution,) = solve(_matrix(), [problem], kernel="linear")
    yield from (solution.n_updates, solution.bias, solution.support, solution.alpha)


def _of_rules() -> Iterator[Any]:
    from textcat.margin import rules
    from textcat.margin.problems import Problem
    from textcat.margin.solve import solve

    rule = rules.PAUM(1.0, 50.0)
    yield [rule.threshold(1), rule.threshold(-1), *rule.step(0.0, 1.0)]
    X, y = _matrix(), np.where(np.arange(12) * 3 % 5 < 2, 1, -1)
    for name, parameters in _PARAMETERS.items():
        problem = Problem.from_labels(y, rules.RULES[name](*parameters), max_epochs=5)
        for solution in (*solve(sparse.csr_array(X), [problem]), *solve(X, [problem], kernel="linear")):
            yield from (name, solution.n_updates, _millionths(solution.bias))
    yield sorted(rules.RULES)


def _of_folds() -> Iterator[Any]:
    from textcat.margin.primal import N_FOLDS, leave_out_folds

    X, lambda_, rho, n = _matrix(), 0.5, 1.0, 12
    fold, label = np.arange(n) % (N_FOLDS + 1) - 1, np.where(np.arange(n) % 3, -1.0, 1.0)
    alpha, threshold, order = np.arange(n) % 4 / 2.0, 1.0 + np.arange(n) % 2, np.arange(n)[::-1].copy()
    score = (X @ X.T + rho**2) @ (alpha * label)
    settings = (order, lambda_, rho, 1, 0.0, np.zeros((X.shape[1], N_FOLDS + 1)))
    rows = np.arange(n)
    yield leave_out_folds(*_csr(X, np.float64), rows, fold, rows, label, threshold, alpha, score, *settings)[0]


def _of_product() -> Iterator[Any]:
    from textcat.model import csr, dense, scorer, sparse

    W, bias = _matrix(9, 21), np.arange(21, dtype=np.float32) / 8
    rows, (starts, topics, values) = _csr(_matrix()), _csr(W)
    scores = dense.product(*rows, W.astype(np.float32), bias)
    yield from (scores, sparse.sparse_product(*rows, starts, topics, values, bias))
    yield from sparse.sparse_top(*rows, starts, topics, values, bias, 4)
    yield scorer.highest(scores, 4)[0]
    yield from (csr.are_rows(starts, topics, 21), csr.are_rows(starts, topics, int(topics.max())))


def _of_shortlist() -> Iterator[Any]:
    from textcat.model import related, shortlist

    rows, (starts, topics, values) = _csr(_matrix()), _csr(_matrix(9, 21))
    listed = shortlist.nearest(*rows, starts, topics, values, 21, 4)
    yield from (listed, shortlist.products_at(*rows, starts, topics, values, 21, listed))
    yield from shortlist.rows_by_topic(listed, 21, np.zeros(22, np.int64), np.zeros(0, np.int32))
    shares, of_document = _csr(np.array([[0.0, 0.5], [0.25, 0.0]])), np.array([[0, 1, -1]], np.int32)
    scores = np.array([[1.0, -1.0, 0.0]], np.float32)
    yield _millionths(related.related_sums(of_document, scores, np.ones(2), np.zeros(2), *shares, 2))


def _of_sigmoid() -> Iterator[Any]:
    from textcat.base import calibration

    yield _millionths(calibration.expit(np.array([-700.0, -2.5, -0.0, 0.125, 3.0, 700.0])))
    z, target = np.array([-2.0, -1.0, 0.5, 1.0, 2.0, -0.5]), np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    yield _millionths(calibration.fit_curve(z, target, np.zeros(6), np.ones(6))[:2])


def _of_sketches() -> Iterator[Any]:
    from contextlib import closing

    from textcat.duplicates.groups import Groups, sketch_texts

    first, other = (" ".join(f"{stem}{i * i}" for i in range(60)) for stem in ("wheat", "gold"))
    texts = [first, other, first.upper() + "!", first.replace("wheat9 ", "corn "), "short"]
    sketches = sketch_texts([{"": text} for text in texts])
    yield sketches["fingerprint"]
    with closing(Groups()) as groups:
        assigned = groups.add(sketches)
    yield from (assigned.groups, assigned.kept)


def _of_ranking() -> Iterator[Any]:
    from textcat.teaching import ranker

    w, (indptr, indices, data) = np.arange(9, dtype=np.float32) / 8, _csr(_matrix())
    for plain in (False, True):
        scores = np.zeros(12, np.float32)
        ranker.rows_times(indptr, indices, data, 0, 12, w, 0.5, scores, plain)
        yield scores
    sums = np.zeros(9)
    ranker.add_up(indices, data, sums)
    yield sums
    y, costs, v = np.where(np.arange(12) % 3, -1, 1).astype(np.int8), np.full(12, 0.5), np.zeros(9)
    rows, state = (indptr[1:].copy(), indices, data), (np.zeros(12), 0.0, 0.0, 0.0)
    b, alphas, _, _ = ranker.solve(*rows, y, costs, v, 0.0, 1.0, 1e-6, 10_000, 1, *state)
    yield from map(_millionths, (b, alphas, v))


def _of_normal_forms() -> Iterator[Any]:
    from textcat.base import normal_forms

    for text in ("cafe\u0301 \u212b", "\u0430\u0438\u0306", "\u1112\u1161\u11ab", "e\u0323\U0001f600"):
        yield from (normal_forms.normalised(text), *normal_forms.origins(text))


CHECKS: dict[str, tuple[Callable[[], Iterator[Any]], str]] = {
    "base.sigmoid": (_of_sigmoid, "bc021918857ed551"),
    "base.normal_forms": (_of_normal_forms, "92df2fcdd0612c56"),
    "duplicates._sketches": (_of_sketches, "93a13d286b5ddf46"),
    "features._rows": (_of_rows, "41b29a3937cffff3"),
    "features._token_cache": (_of_tokens, "9749d682cc49fcd5"),
    "margin._dual": (_of_dual, "f3db6fe08406cdc4"),
    "margin._folds": (_of_folds, "96ecd5f30d458a99"),
    "margin._primal": (_of_primal, "0abfb10a0d47b53f"),
    "margin.rules": (_of_rules, "39511f16cb22f805"),
    "model._product": (_of_product, "630ab1cca018e341"),
    "model._shortlist": (_of_shortlist, "f2e9358402bdd488"),
    "teaching._ranking": (_of_ranking, "21552544c00b907a"),
}
"""For each compiled module, by its name in the package: what gives its results, and their checksum."""


def broken_kernels(checks: Sequence[KernelCheck]) -> Iterator[str]:
    """Yield a sentence for each compiled module that is broken."""
    for check in checks:
        if check.error:
            yield f"The compiled module textcat.{check.name} is broken: {check.error}."


if __name__ == "__main__":
    main()

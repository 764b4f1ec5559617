"""Every compiled module is checked, and a kernel that computes wrongly, is missing, or ends its process is found."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import textcat
from textcat.doctor import kernels
from textcat.doctor.kernels import CHECKS, broken_kernels, check_kernel, check_kernels_apart, checksum_of

PACKAGE = Path(textcat.__file__).parent
# For each compiled module: where a result of it is used, and which is falsified.
USED_IN = {
    "base.sigmoid": ["textcat.base.calibration.expit", "textcat.base.calibration.fit_curve"],
    "features._rows": [
        "textcat.features.steps.rows",
        "textcat.features.rows.document_frequencies",
        "textcat.features.rows.text_lengths",
        "textcat.features.fitting.character_keys",
        "textcat.features.rows.vector_sums",
        "textcat.features.rows.vector_products",
    ],
    "features._token_cache": ["textcat.features.tokens.Tokens.tokenize"],
    "margin._dual": ["textcat.margin.solve.solve"],
    "margin._folds": ["textcat.margin.primal.leave_out_folds"],
    "margin._primal": ["textcat.margin.solve.solve", "textcat.margin.primal.dots"],
    "margin.rules": ["textcat.margin.rules.PAUM"],
    "model._product": [
        "textcat.model.dense.product",
        "textcat.model.sparse.sparse_product",
        "textcat.model.sparse.sparse_top",
        "textcat.model.scorer.highest",
        "textcat.model.csr.are_rows",
    ],
    "model._shortlist": [
        "textcat.model.shortlist.nearest",
        "textcat.model.shortlist.products_at",
        "textcat.model.shortlist.rows_by_topic",
        "textcat.model.related.related_sums",
    ],
    "base.normal_forms": ["textcat.base.normal_forms.normalised", "textcat.base.normal_forms.origins"],
    "duplicates._sketches": ["textcat.duplicates.groups.sketch"],
    "teaching._ranking": [
        "textcat.teaching.ranker.rows_times",
        "textcat.teaching.ranker.add_up",
        "textcat.teaching.ranker.solve",
    ],
}


def slightly_wrong(value):
    """Return a result with its first number, or its last word, changed."""
    if isinstance(value, str):
        return value + "wrong"
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [*value[:-1], "wrong"]
    if isinstance(value, (list, tuple)):
        return type(value)([slightly_wrong(value[0]), *value[1:]])
    if isinstance(value, np.ndarray):
        changed = value.copy()
        changed.flat[0] += 1
        return changed
    if isinstance(value, textcat.Solution):
        value.n_updates += 1
        return value
    if isinstance(value, textcat.rules.Rule):
        return type(value)(1.0, 51.0)
    return value + 1 if not isinstance(value, bool) else not value


def test_every_compiled_module_has_a_check():
    compiled = {path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.pyx")}
    assert {".".join(path.parts) for path in compiled} == set(CHECKS) == set(USED_IN)


def test_all_kernels_of_this_build_compute_right():
    checks = [*map(check_kernel, CHECKS)]
    assert [check.name for check in checks] == [*CHECKS]
    assert [*broken_kernels(checks)] == []


@pytest.mark.parametrize(("module", "place"), [(module, place) for module in USED_IN for place in USED_IN[module]])
def test_a_kernel_that_computes_wrongly_is_found(module, place, monkeypatch):
    owner, _, name = place.rpartition(".")
    parts = owner.split(".")
    target = import_module(owner) if parts[-1].islower() else getattr(import_module(".".join(parts[:-1])), parts[-1])
    right = getattr(target, name)

    def wrong(*arguments, **options):
        result = right(*arguments, **options)
        if result is not None:
            return slightly_wrong(result)
        written = next(part for part in arguments[::-1] if isinstance(part, np.ndarray) and part.flags.writeable)
        if name == "sketch":
            written = arguments[1]
        written.flat[-1] += 1
        return None

    monkeypatch.setattr(target, name, wrong)
    monkeypatch.setattr(kernels, "CHECKS", {module: CHECKS[module]})
    check = check_kernel(module)
    assert check.error == "its results differ from those of a sound build"


def test_a_module_that_is_missing_is_found(monkeypatch):
    monkeypatch.setitem(sys.modules, "textcat.margin._folds", None)
    (sentence,) = broken_kernels([*map(check_kernel, CHECKS)])
    assert sentence.startswith("The compiled module textcat.margin._folds is broken: cannot be imported")


def test_a_kernel_that_raises_is_found(monkeypatch):
    monkeypatch.setitem(CHECKS, "margin._folds", (lambda: 1 // 0, ""))
    (sentence,) = broken_kernels([*map(check_kernel, CHECKS)])
    assert "ZeroDivisionError" in sentence


def test_a_checksum_depends_on_the_last_bit_of_a_number_and_not_on_its_type():
    numbers = np.arange(6.0).reshape(2, 3) / 8
    assert checksum_of(iter([numbers])) == checksum_of(iter([numbers.astype(np.float32)])) == checksum_of([[*numbers]])
    numbers[1, 2] = np.nextafter(numbers[1, 2], 1)
    assert checksum_of([numbers]) != checksum_of([np.arange(6.0).reshape(2, 3) / 8])
    assert checksum_of([[1, 2]]) != checksum_of([1, 2])


OTHER_INSTRUCTIONS = {
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX2 FMA3",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-AVX512F",
}


@pytest.mark.long
def test_a_process_of_its_own_finds_the_same_also_with_the_instructions_of_other_machines(monkeypatch):
    for name, value in OTHER_INSTRUCTIONS.items():
        monkeypatch.setenv(name, value)
    checks = check_kernels_apart()
    assert [(check.name, check.error) for check in checks] == [(name, "") for name in CHECKS]


@pytest.mark.long
def test_a_kernel_that_ends_its_process_is_told_with_those_after_it():
    program = (
        "import os; from textcat.doctor import kernels\n"
        "sound = dict.fromkeys(kernels.CHECKS, (list, kernels.checksum_of([])))\n"
        "kernels.CHECKS = sound | {'margin.rules': (os.abort, '')}\n"
        "kernels.main()"
    )
    checks = check_kernels_apart([sys.executable, "-c", program])
    errors = {check.name: check.error for check in checks if check.error}
    names = [*CHECKS]
    assert [*errors] == names[names.index("margin.rules") :]
    assert errors["margin.rules"].startswith("the process ended with code -")
    assert errors["teaching._ranking"].startswith("not checked")


def test_a_kernel_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(kernels, "LONGEST", 0.5)
    program = "import time; print('\"base.sigmoid\"', flush=True); time.sleep(60)"
    checks = check_kernels_apart([sys.executable, "-c", program])
    assert len(checks) == len(CHECKS)
    assert "did not end within" in checks[0].error

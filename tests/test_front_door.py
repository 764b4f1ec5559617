"""What `import textcat` offers is there, is typed, and is read alike by Python, type checkers and editors.

``python tests/test_front_door.py --write`` writes the stubs anew: of the late imports, and of the compiled rules.
"""

import inspect
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from cases import every

import textcat
import textcat.reading
from textcat.margin.rules import RULES

ROOT = Path(__file__).parent.parent
RULES_HEAD = '''"""The compiled rules, as type checkers and editors see them: formulas and sources are in rules.pyx."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

class Parameter(NamedTuple):
    name: str
    low: float = ...
    high: float = ...
    closed: str = ...
    default: float | Callable[..., float] | None = ...

    def check(self, value: float) -> float: ...
    def allows(self, value: object) -> bool: ...
    @property
    def range_in_words(self) -> str: ...

class Rule:
    """A member of the family; use one of its subclasses, or write one."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]]
    CONSTANT: ClassVar[bool]

    def threshold(self, y: int, N: float = 0.0, t: float = 0.0, R: float = 1.0) -> float: ...
    def step(self, m: float, q: float, N: float = 0.0, t: float = 0.0, R: float = 1.0) -> tuple[float, float]: ...
    @property
    def is_initialized(self) -> bool: ...
    @property
    def parameters(self) -> dict[str, float]: ...

RULES: dict[str, type[Rule]]
'''
SCRIPT = """
from textcat import PAUM, Corpus, Problem, Recipe, Solution, open_corpus, read_recipe, rules, solve

reveal_type(PAUM(1, 50, random_state=0).fit)
reveal_type(open_corpus("newswire"))
reveal_type(read_recipe("default"))
reveal_type(rules.PAUM(1, 50).tau_pos)
PAUM().fit([[1.0], [0.0]], [1, 0]).set_params(tau_pos=1).tau_pos_
reveal_type(solve)
"""


def stub_of_late_imports(package):
    """Return what __init__.pyi must say: where each name comes from, in ruff's order of imports."""
    homes = package.HOMES
    order = sorted(homes, key=lambda name: (homes[name], not name.isupper(), name.islower(), name))
    lines = [f"from textcat.{homes[name]} import {name} as {name}" for name in order]
    head = f'"""The names that `{package.__name__}` imports at their first use."""\n'
    version = ["", "__version__: str"] if hasattr(package, "__version__") else []
    return "\n".join([head, *lines, *version, ""])


def stub_of_the_rules():
    """Return what rules.pyi must say: each rule's summary, and its constructor's parameters with their defaults."""
    text = RULES_HEAD
    for rule in RULES.values():
        parameters = inspect.signature(rule).parameters.values()
        arguments = ", ".join(f"{parameter.name}: float{default_of(parameter)}" for parameter in parameters)
        attributes = "".join(f"    {parameter.name}: float\n" for parameter in parameters)
        text += f'\nclass {rule.__name__}(Rule):\n    """{summary(rule)}"""\n\n{attributes}\n'
        text += f"    def __init__(self, {arguments}) -> None: ...\n"
    return text


def summary(thing):
    return inspect.cleandoc(thing.__doc__).splitlines()[0]


def default_of(parameter):
    if parameter.default is parameter.empty:
        return ""
    return " = ..." if callable(parameter.default) else f" = {parameter.default!r}"


STUBS = {
    "__init__.pyi": partial(stub_of_late_imports, textcat),
    "margin/rules.pyi": stub_of_the_rules,
    "reading/__init__.pyi": partial(stub_of_late_imports, textcat.reading),
}


@every("path", STUBS)
def test_the_stubs_say_what_the_code_does(path):
    assert (ROOT / "textcat" / path).read_text(encoding="utf-8") == STUBS[path](), (
        "the names have changed: write the stubs anew with `python tests/test_front_door.py --write`"
    )


def test_the_front_door_lists_its_names_in_order_and_has_each():
    assert list(textcat.HOMES) == sorted(textcat.HOMES)
    for name in textcat.__all__:
        assert getattr(textcat, name).__doc__, name
        assert name in dir(textcat)


def test_a_name_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(AttributeError, match=r"module 'textcat' has no attribute 'PAMU'; it has .*PAUM"):
        textcat.PAMU  # noqa: B018


def test_rules_and_learners_are_told_apart():
    assert textcat.rules.PAUM is not textcat.PAUM
    assert issubclass(textcat.rules.PAUM, textcat.rules.Rule)
    assert textcat.PAUM(1, 50).rules_for([0.5]) == [textcat.rules.PAUM(1, 50)]


def test_a_type_checker_knows_the_names_and_what_they_return(tmp_path):
    pytest.importorskip("mypy")
    assert (ROOT / "textcat" / "py.typed").exists()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    options = ["--config-file=", f"--cache-dir={tmp_path}", "--follow-imports=silent", "--ignore-missing-imports"]
    command = [
        sys.executable,
        "-m",
        "mypy",
        *options,
        "--no-site-packages",
        script,
    ]  # without numpy's types: in seconds
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    revealed = [line.split('Revealed type is "')[1] for line in run.stdout.splitlines() if "Revealed" in line]
    assert run.returncode == 0, run.stdout + run.stderr
    starts = ["def (X: Any", "textcat.corpus.documents.Corpus", "textcat.recipes.recipe.Recipe", "float", "def (X: Any"]
    ends = ["textcat.margin.learners.PAUM", "", "", "", "list[textcat.margin.problems.Solution]"]
    for line, start, end in zip(revealed, starts, ends, strict=True):
        assert line.removeprefix("builtins.").startswith(start), line
        assert line.rstrip('"').replace("builtins.", "").endswith(end), line


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    for path, stub in STUBS.items():
        (ROOT / "textcat" / path).write_text(stub(), encoding="utf-8")

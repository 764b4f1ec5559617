"""A leading underscore means: this file only, and in the name of a module: its folder only. CONTRIBUTING tells it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted(path for room in ("textcat", "scripts", "tests") for path in (ROOT / room).rglob("*.py"))
# Names that Python, Jupyter and spaCy tell everybody to use.
PROTOCOLS = {"_asdict", "_field_defaults", "_fields", "_make", "_replace", "_repr_html_", "_exit", "_"}
# Strings that name an attribute, as "_CONSTANT" or "textcat.module._name" does, or are a program.
NAMING = re.compile(r"_[A-Z]\w*|textcat\.[\w.]+|(.*\n)?(from \S+ )?import .*", re.DOTALL)
PRIVATE = re.compile(r"(?<!\w)_[^\W_]\w*")
DEFINED = re.compile(r"^\s*(?:(?:async )?def |class |(?:self\.)?(?=_\w+(?:: [^=\n]+)? = ))(_\w+)", re.MULTILINE)
#: Today's leftovers, "file: name". An entry goes when its name is not used across files any more; none is added.
EXCEPTIONS: set[str] = set()


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in PROTOCOLS


def is_self(node):
    return isinstance(node, ast.Name) and node.id == "self"


def defined_in(nodes):
    """The names of a file's functions, classes, variables and attributes."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def imported_by(node, folder):
    """The private names and modules that a statement imports from elsewhere."""
    names = [alias.name for alias in node.names]
    start = folder[: len(folder) + 1 - node.level] if getattr(node, "level", 0) else ()
    module = ".".join([*start, *filter(None, [getattr(node, "module", None)])])
    for name in [f"{module}.{name}" for name in names] if isinstance(node, ast.ImportFrom) else names:
        parts = tuple(name.split("."))
        for i, part in enumerate(parts):
            of_folder = parts[:i] == folder and any(ROOT.joinpath(*folder).glob(f"{part}.py*"))
            if is_private(part) and not of_folder:
                yield part


def called(function):
    """The last name of what is called: "setattr" of `monkeypatch.setattr`."""
    return getattr(function, "attr", getattr(function, "id", ""))


def names_of(path):
    """Return the names that a file defines, the private ones that it uses of others, and those in its strings.

    A file without other private names than those that its lines define is not parsed.
    """
    text = path.read_text(encoding="utf-8")
    names = {*filter(is_private, PRIVATE.findall(text))}
    if names <= {*DEFINED.findall(text)}:
        return names, set(), set()
    nodes = [*ast.walk(ast.parse(text))]  # which takes longer than all else here
    own, used, in_strings = set(defined_in(nodes)), set(), set()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            used.update(imported_by(node, path.relative_to(ROOT).parent.parts))
        elif isinstance(node, ast.Attribute) and node.attr not in own:
            used.add(node.attr)
        elif isinstance(node, ast.Call) and called(node.func).endswith("setattr"):
            names = {str(argument.value) for argument in node.args[1:2] if isinstance(argument, ast.Constant)}
            used |= names - own
        elif isinstance(node, ast.Constant) and NAMING.fullmatch(str(node.value)):
            in_strings |= {*re.findall(r"(?<!\w)_\w+", str(node.value))} - own
    return own, {*filter(is_private, used)}, {*filter(is_private, in_strings)}


def listed():
    """The private names of dependencies that CONTRIBUTING lists, with the files of the row, "file: name"."""
    for row in re.findall(r"^\|.*\|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE):
        _, _, what, *files = row.split("|")
        for name in re.findall(r"[.`](_\w+)", what):
            yield from (f"{path}: {name}" for path in re.findall(r"`([\w/]+\.py)`", "".join(files)))


def used():
    """Return the private names that files use of others, "file: name"."""
    names = {path: names_of(path) for path in FILES}
    package = ROOT / "textcat"
    of_package = {name for path, (own, *_) in names.items() if path.is_relative_to(package) for name in own}
    return {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path, (_, used, in_strings) in names.items()
        for name in used | in_strings & of_package
    }


def test_an_underscore_means_this_file_only_and_contributing_lists_those_of_dependencies_that_are_used():
    """One test, as all files are read for it, which takes seconds."""
    found = used()
    assert found - set(listed()) == EXCEPTIONS
    rows = {}
    for use in listed():
        rows.setdefault(use.partition(": ")[2], []).append(use)
    assert [name for name, uses in rows.items() if not found & {*uses}] == []

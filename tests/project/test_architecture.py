"""Imports run downwards only."""

import ast
import re
from functools import cache
from pathlib import Path

import textcat
import textcat.reading

ROOT = Path(__file__).parents[2]
LAYERS = (
    {"base", "lean_imports"},
    {"reading"},
    {"duplicates"},
    {"corpus", "evaluation", "features", "margin", "runs", "trends"},
    {"recipes"},
    {"model"},
    {"training"},
    {"papers", "tagging"},
    {"review", "teaching"},
    {"report", "serving", "sharing"},
    {"doctor"},
    {"cli"},
    {"__main__"},
)
STRANGERS = LAYERS[3]
LAYER_OF = {part: height for height, parts in enumerate(LAYERS) for part in parts}
DOORS = {"textcat": textcat.HOMES, "textcat.reading": textcat.reading.HOMES}
HOME_OF = {f"{door}.{name}": f"textcat.{home}.{name}" for door, homes in DOORS.items() for name, home in homes.items()}
DOOR_NAMES = {name for homes in DOORS.values() for name in homes}
MODULES = sorted({path.relative_to(ROOT) for path in ROOT.glob("textcat/**/*.py")} - {Path("textcat/__init__.py")})


@cache
def nodes_of(module):
    """What a module's syntax tree has, from its outside to its inside."""
    return [*ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))]


@cache
def imported(module):
    """Return the absolute names that a module imports, also inside functions, also for the type checker only.

    A name of a front door counts as the name in the module that it comes from, also where it is an attribute, as in
    `textcat.train`.
    """
    package, names = module.parent.parts, []
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else ()
            names += [".".join((*start, *filter(None, [node.module]), alias.name)) for alias in node.names]
        elif isinstance(node, ast.Attribute) and node.attr in DOOR_NAMES and (of := ast.unparse(node.value)) in DOORS:
            names.append(f"{of}.{node.attr}")
    return [HOME_OF.get(name, name) for name in names]


def test_imports_run_downwards_only():
    wrong = []
    for module in MODULES:
        part = module.with_suffix("").parts[1]
        used = {name.split(".")[1] for name in imported(module) if re.match(r"textcat\.(?!__version__)", name)}
        for other in used - {part}:
            if LAYER_OF[other] > LAYER_OF[part]:
                wrong.append(f"{module} imports upwards: textcat.{other}")
            if {part, other} <= STRANGERS:
                wrong.append(f"{module} must not know textcat.{other}")
    assert wrong == []


def test_no_two_modules_import_each_other_even_by_way_of_others():
    def name_of(path):
        return ".".join(path.with_suffix("").parts).removesuffix(".__init__")

    modules = {name_of(path): path for path in MODULES}
    # What a folder's __init__ gathers of its own folder is no use of it by others.
    uses = {
        name: {used if used in modules else used.rpartition(".")[0] for used in imported(path)}
        - {name, *(other for other in modules if path.stem == "__init__" and other.startswith(f"{name}."))}
        for name, path in modules.items()
    }
    while bottom := {name for name in uses if not uses[name] & uses.keys()}:
        uses = {name: used for name, used in uses.items() if name not in bottom}
    assert not uses, f"a circle among {', '.join(sorted(uses))}"


def borrowed_methods(module):
    """Yield the lines of class bodies that bind a function of another module."""
    nodes = nodes_of(module)
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}
    for node in nodes:
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            is_name = isinstance(line, ast.Assign) and isinstance(line.value, ast.Name | ast.Attribute)
            value = ast.unparse(line.value) if is_name else ""
            is_function = re.fullmatch(r"(\w+\.)*[a-z_]\w*", value)  # classes begin with a capital
            if is_function and value.partition(".")[0] in imported:
                yield f"{module}: {node.name}: {ast.unparse(line)}"


def test_methods_are_written_in_their_class():
    """A function of another module that a class body binds makes one class of several files."""
    assert [line for module in MODULES for line in borrowed_methods(module)] == []

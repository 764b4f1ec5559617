"""What users hold says what its arguments are and what it returns; all else says in a line what it does.

Public to users is what the front door or a room's ``__init__`` lists in ``__all__``, with its methods. Other names
without a leading underscore may be used anywhere in the package: their docstrings open with the verb a reader expects.
Left out is what takes options of the command line: their help texts are its documentation.
"""

import ast
import re
from importlib import import_module
from pathlib import Path

import textcat

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path.relative_to(ROOT)
    for path in ROOT.glob("textcat/**/*.py")
    if not any(part.startswith("_") and part != "__init__.py" for part in path.relative_to(ROOT).parts)
)
UNPLAIN = {"Give", "Gives", "Have", "Let", "Lets", "Make", "Put", "Say", "Tell", "Tells"}
# What an option of the command line is annotated with: in place, or by a name that several commands share.
CLI = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("textcat/cli/*.py")))
SHARED = "|".join(re.findall(r"^(\w+) = Annotated", CLI, flags=re.MULTILINE))
OPTION = re.compile(rf"Annotated\[|typer\.|\b({SHARED})\b")
FOR_USERS = {f"textcat.{module}.{name}" for name, module in textcat.HOMES.items()}
for room in ROOT.glob("textcat/*/__init__.py"):
    package = import_module(f"textcat.{room.parent.name}")
    homes = (getattr(package, name) for name in getattr(package, "__all__", ()))
    FOR_USERS |= {f"{home.__module__}.{home.__qualname__}" for home in homes if hasattr(home, "__qualname__")}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def public_things(module):
    """Yield the public functions, classes and methods of a module: names, nodes, and the docstrings about them."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    yield "", tree, ast.get_docstring(tree)
    for node in tree.body:
        if not isinstance(node, (*FUNCTION, ast.ClassDef)) or node.name.startswith("_"):
            continue
        yield node.name, node, ast.get_docstring(node)
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(method, FUNCTION) and method.name == "__init__":
                yield node.name, method, ast.get_docstring(node)  # a class explains what it is made from
            elif isinstance(method, FUNCTION) and not method.name.startswith("_") and not is_setter(method):
                yield f"{node.name}.{method.name}", method, ast.get_docstring(method)


def is_setter(node):
    return any(ast.unparse(decorator).endswith((".setter", "overload")) for decorator in node.decorator_list)


def takes_options(function):
    args = function.args
    return any(OPTION.search(ast.unparse(arg.annotation)) for arg in (*args.args, *args.kwonlyargs) if arg.annotation)


def arguments_of(function):
    args = function.args
    named = [argument.arg for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    more = [argument.arg for argument in (args.vararg, args.kwarg) if argument]
    return [name for name in named + more if name not in ("self", "cls") and not name.startswith("_")]


def names_in(section, docstring):
    """The names that a section lists, as in ``a, b : int`` or ``**settings``."""
    text = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[\w ]*\n---|\Z)", docstring, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in (text[1] if text else "").splitlines() if re.match(r"[\w*]", line)]
    return {name.strip(" *") for line in lines for name in line.partition(" : ")[0].split(",")}


def returns_something(function):
    """Whether a function returns or yields a value, and not itself."""
    returned = ast.unparse(function.returns) if function.returns else "None"
    return returned not in ("None", "NoReturn", "Self", "self")


def faults_of(module):
    dotted = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    for name, node, docstring in public_things(module):
        if not docstring:
            yield f"{name or 'the module'} has no docstring"
            continue
        first = docstring.split()[0].rstrip(",.:")
        if first in UNPLAIN:
            yield f"{name or 'the module'} begins with {first!r}: begin with Return, Read, Write, Raise, Compute, Check"
        for_users = f"{dotted}.{name.partition('.')[0]}" in FOR_USERS
        if not for_users or not isinstance(node, FUNCTION) or len(arguments_of(node)) < 2 or takes_options(node):
            continue
        missing = [argument for argument in arguments_of(node) if argument not in names_in("Parameters", docstring)]
        if missing:
            yield f"{name} does not document {', '.join(missing)} under Parameters"
        if (
            node.name != "__init__"
            and returns_something(node)
            and not re.search(r"^(Returns|Yields)\n---", docstring, flags=re.MULTILINE)
        ):
            yield f"{name} does not document what it returns"


def test_public_things_are_documented_in_plain_words():
    faults = dict.fromkeys(f"{module}: {fault}" for module in MODULES for fault in faults_of(module))
    assert not faults, "\n".join(faults)

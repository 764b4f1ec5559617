"""Every error of the package says in its sentence what is wrong, and how to mend it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from cases import every

ROOT = Path(__file__).parents[2]
# What a remedy starts with: an imperative, a command, or what is allowed instead.
VERBS = frozenset(
    """
    add allow append ask begin check choose close compare copy correct draw evaluate fetch free get give install learn
    leave list look lower make measure mend merge move name open pack pass pip pull push put read remove rename repair
    replace restore resume run save search set shorten show split start take train try undo uninstall unpack unset
    update upgrade use wait write
    """.split()  # noqa: SIM905
)
ALLOWED = re.compile(r"`|known|did you mean|only \w+|one of\b|every \w+ must", re.IGNORECASE)
DEMAND = re.compile(r"\bmust (be|have|end)\b")
# Expressions in a message that end in a remedy of their own.
REMEDIES = re.compile(
    r"remedy|hint|by_hand|instructions\(card\)|start_over|did_you_mean|similar_files|\bnear\b|\{fault\}|\{detail\}",
    re.IGNORECASE,
)
SEPARATORS = re.compile(r"[:;.?]\s+|, (?:or|and|so|but)\b\s*|\bor\b|\band\b|\bthen\b")
# What is passed on: the sentence is written, and looked at, where it comes from.
PASSED_ON = frozenset({"refusal", "sentence", "str(record)", "str(error)"})
EXCEPTIONS = frozenset(
    {
        # scikit-learn's sentence for all vectorizers, by which its users know it.
        "Iterable over raw text documents expected, string object received.",
        # Behind these stands what scikit-learn or `parse_value` says that a parameter must be.
        "Recipe {self.name}: {error}",
        "The recipe's field {path} cannot be {text}; {error}.",
    }
)


@cache
def trees():
    """Return the tree of each file of the package; each node knows the one around it."""
    found = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("textcat/**/*.py"))}
    for tree in found.values():
        for scope in ast.walk(tree):
            for child in ast.iter_child_nodes(scope):
                child.scope = scope
    return found


@cache
def error_classes():
    """Return the names of `TextcatError` and all that derive from it, and of those with a constructor of their own."""
    classes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = [(node.name, {ast.unparse(base) for base in node.bases}) for node in classes]
    names = {"TextcatError"}
    while more := {name for name, of in bases if names & of} - names:
        names |= more
    own = {
        node.name
        for node in classes
        if node.name in names and any(getattr(part, "name", "") == "__init__" for part in node.body)
    }
    return names, own


@cache
def constants():
    """Return the texts that have a name in a file, by that name."""
    return {
        target.id: node.value
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant | ast.JoinedStr)
    }


@cache
def sentences():
    """Return what functions return that only write a sentence, by their names."""
    return {
        node.name: node.body[-1].value
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.body[-1], ast.Return)
        and isinstance(node.body[-1].value, ast.JoinedStr)
    }


def messages():
    """Yield each place where an error gets its text, the expression of the text, and the function around it."""
    names, own_text = error_classes()
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            scope = scopes_of(node)
            in_class = next((part for part in scope if isinstance(part, ast.ClassDef)), None)
            raised = called in names - own_text or is_fault_of_content(path, node, called)
            initialised = called == "__init__" and in_class is not None and in_class.name in own_text
            if raised or initialised:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.args[0], scope


def is_fault_of_content(path, node, called):
    """Return whether a call makes an UnreadableError with a remedy of its own: those of stories get it further up."""
    if called != "UnreadableError" or len(node.args) > 1 or path.name == "reuters.py":
        return False
    return not isinstance(node.args[0], ast.Starred)


def scopes_of(node):
    """Return the nodes around a node, innermost first."""
    scopes = []
    while (node := getattr(node, "scope", None)) is not None:
        scopes.append(node)
    return scopes


def templates(node, scopes, seen=frozenset()):
    """Return the texts that an expression may have; a value in them is its expression in braces."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.FormattedValue):
        name = ast.unparse(node.value)
        assigned = [] if name in seen else templates(node.value, scopes, seen)
        return (
            assigned if assigned and all(" " in re.sub(r"\{.*\}", "", text) for text in assigned) else [f"{{{name}}}"]
        )
    if isinstance(node, ast.JoinedStr):
        texts = [""]
        for part in node.values:
            texts = [text + more for text in texts for more in templates(part, scopes, seen)]
        return texts
    if isinstance(node, ast.BinOp):
        return [a + b for a in templates(node.left, scopes, seen) for b in templates(node.right, scopes, seen)]
    if isinstance(node, ast.IfExp):
        return [*templates(node.body, scopes, seen), *templates(node.orelse, scopes, seen)]
    name = ast.unparse(node)
    if isinstance(node, ast.Call) and name not in seen and ast.unparse(node.func) in sentences():
        return templates(sentences()[ast.unparse(node.func)], (), seen | {name})
    if name not in seen and (values := assignments(name, scopes)):
        return [text for value in values for text in templates(value, scopes, seen | {name})]
    return [f"{{{ast.unparse(node)}}}"]


def assignments(name, scopes):
    """Return what is assigned to a name in the functions around, or to a constant of the package."""
    function = next((scope for scope in scopes if isinstance(scope, ast.FunctionDef)), None)
    found = [value for target, value in assigned_in(function) if target == name]
    return found or ([constants()[name]] if name in constants() else [])


@cache
def assigned_in(function):
    """Return the names that are assigned to in a function, or the like of `a.b` in a tuple, each with its value."""
    found = []
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.append((target.id, node.value))
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                    found += [(ast.unparse(name), value) for name, value in pairs]
    return found


def has_remedy(text):
    """Return whether a text has a clause behind its first that says what to do."""
    clauses = [clause.strip(" ,{'\"") for clause in SEPARATORS.split(text)[1:]]
    return bool(REMEDIES.search(text) or DEMAND.search(text)) or any(
        clause.partition(" ")[0].lower().rstrip(".,") in VERBS or ALLOWED.match(clause) for clause in clauses if clause
    )


def test_a_command_in_a_message_can_be_typed_whatever_its_paths_are():
    without_blanks = {"card.name", "name", "path", "' '.join(path)"}  # of corpora and commands
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("textcat/**/*.py")}
    parsed = {path: ast.parse(text) for path, text in texts.items() if "`textcat" in text}  # the others take seconds
    for place, node in ((path, node) for path, tree in parsed.items() for node in ast.walk(tree)):
        if not (isinstance(node, ast.JoinedStr) and any("`textcat" in str(part.value) for part in node.values)):
            continue  # to unparse takes long
        for command in re.findall(r"`(textcat[^`]*)`", ast.unparse(node)):
            values = {*re.findall(r"\{([^}]*)\}", command)}
            unquoted = {value for value in values if not value.startswith("quote(")} - without_blanks
            assert not unquoted, (place, command)


@pytest.fixture(scope="module")
def texts():
    """Return all texts that errors may have, each with its place."""
    return [(place, text) for place, node, scopes in messages() for text in templates(node, scopes)]


@pytest.fixture(scope="module")
def looked_at(texts):
    return [pair for pair in texts if pair[1].strip("{}") not in PASSED_ON and pair[1] not in EXCEPTIONS]


def test_no_exception_is_listed_in_vain(texts):
    assert {text for _, text in texts} >= EXCEPTIONS


def test_the_errors_of_the_package_are_seen(looked_at):
    assert {"TextcatError", "ModelError", "PoolError", "StoreError", "DamagedError"} <= error_classes()[0]
    assert len(looked_at) > 250


def test_an_error_names_what_is_wrong(looked_at):
    assert not [pair for pair in looked_at if "{" not in pair[1] and len(SEPARATORS.split(pair[1])[0].split()) < 2]


def test_an_error_names_a_remedy(looked_at):
    assert not [pair for pair in looked_at if not has_remedy(pair[1])]


@every(
    "text, is_complete",
    [
        ("No corpus {name}. Known corpora: {names}", True),
        ("{path} is missing: restore it", True),
        ("{jobs} jobs do nothing", False),
        ("{path} is damaged: its checksum differs", False),
    ],
)
def test_a_sentence_without_a_remedy_is_told_from_one_that_has_it(text, is_complete):
    assert has_remedy(text) == is_complete

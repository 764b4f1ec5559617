"""Imports run downwards only, and the README's list of modules is the folder's."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = (
    {"_product", "cluster", "errors", "files", "manifest", "progress", "shipped"},
    {"comparison", "corpus", "features", "margin", "metrics", "ranking", "resampling", "thresholds"},
    {"examples", "recipe"},
    {"report", "search", "selection", "tagger", "validation"},
    {"storage"},
    {"archive", "papers", "spacy_component"},
    {"output"},
    {"cli"},
    {"__main__"},
)
STRANGERS = LAYERS[1]
FRIENDS = {"comparison", "metrics", "ranking", "resampling", "thresholds"}
LAYER_OF = {part: height for height, parts in enumerate(LAYERS) for part in parts}
MODULES = sorted({path.relative_to(ROOT) for path in ROOT.glob("textcat/**/*.py")} - {Path("textcat/__init__.py")})


class RuntimeImports(ast.NodeVisitor):
    """The absolute names a module imports, also inside functions, but not those for the type checker only."""

    def __init__(self, module):
        self.package, self.names = module.parent.parts, []
        self.visit(ast.parse((ROOT / module).read_text(encoding="utf-8")))

    def visit_If(self, node):
        if ast.unparse(node.test) not in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            self.generic_visit(node)

    def visit_Import(self, node):
        self.names += [alias.name for alias in node.names]

    def visit_ImportFrom(self, node):
        start = self.package[: len(self.package) + 1 - node.level] if node.level else ()
        self.names += [".".join((*start, *filter(None, [node.module]), alias.name)) for alias in node.names]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_run_downwards_only(module):
    part = module.with_suffix("").parts[1]
    used = {name.split(".")[1] for name in RuntimeImports(module).names if re.match(r"textcat\.[a-z]", name)}
    for other in used - {part}:
        assert LAYER_OF[other] <= LAYER_OF[part], f"{module} imports upwards: textcat.{other}"
        assert not {part, other} <= STRANGERS or {part, other} <= FRIENDS, f"{module} must not know textcat.{other}"


def caption(module):
    """The first line of a module's docstring, which says what it turns into what."""
    return re.match(r'(?:#[^\n]*\n|\s)*"""(.+?)(?:"""|\n)', module.read_text(encoding="utf-8"))[1]


def test_the_readme_lists_every_module_with_its_caption():
    modules = [path for kind in ("py", "pyx") for path in ROOT.glob(f"textcat/**/*.{kind}") if path.stem != "__init__"]
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Architecture\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\s*- `(textcat/[^`]+\.pyx?)`: (.+)$", section, flags=re.MULTILINE)
    assert sorted(listed) == sorted((path.relative_to(ROOT).as_posix(), caption(path)) for path in modules)

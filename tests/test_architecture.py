"""Imports run downwards only."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = (
    {"cluster", "documents", "errors", "files", "progress"},
    {"reading"},
    {"corpus", "evaluation", "features", "margin"},
    {"recipe"},
    {"model"},
    {"training"},
    {"papers", "tagging"},
    {"cli"},
    {"__main__"},
)
STRANGERS = LAYERS[2]
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
        assert not {part, other} <= STRANGERS, f"{module} must not know textcat.{other}"

"""Build the compiled kernels, and put the cards, recipes and the small corpus into the wheel."""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SHIPPED = ("corpora", "models")  # top-level folders that travel inside the wheel as textcat/_shipped/*

# -ffp-contract=off: no fused multiply-add, so that every instruction set gives the same bits.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O2", "-fopenmp-simd", "-ffp-contract=off"]
if "-O2" in FLAGS and "-O" in os.environ.get("CFLAGS", ""):
    FLAGS.remove("-O2")  # whoever builds has chosen a level, and the last one named would win


class BuildWithShipped(build_py):
    """Copy the shipped folders beside the modules (a checkout finds them at its top level instead)."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if not getattr(self, "editable_mode", False):
            for folder in SHIPPED:
                self._ship(Path(folder))

    def _ship(self, folder: Path) -> None:
        for source in sorted(folder.rglob("*")):
            if source.suffix in {".toml", ".sgm", ".gz"} and source.is_file():
                target = Path(self.build_lib, "textcat", "_shipped", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


class BuildWithDirectives(build_ext):
    """Compile with these directives: setuptools calls Cython when it builds, and not for what needs no build."""

    def finalize_options(self) -> None:
        """Finalize as usual, then set the directives."""
        super().finalize_options()
        self.cython_directives = {
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": False,
        }


modules = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        depends=[str(header) for header in (*Path("textcat").glob("*.h"), *source.parent.glob("*.h"))],
        extra_compile_args=FLAGS,
    )
    for source in sorted(Path("textcat").rglob("*.pyx"))
]
setup(ext_modules=modules, cmdclass={"build_py": BuildWithShipped, "build_ext": BuildWithDirectives})

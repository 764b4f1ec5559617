"""Build the compiled kernels; put cards, the small corpus and a bill of materials into the wheel."""

import json
import os
import re
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SHIPPED = Path("corpora")  # a folder of the top level that travels inside the wheel as textcat/corpora
WORKSHOP = {"ci", "dev", "docs", "test"}  # extras for those who change textcat

# -ffp-contract=off: no fused multiply-add, so that every instruction set gives the same bits.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O2", "-fopenmp-simd", "-ffp-contract=off"]
if "-O2" in FLAGS and "-O" in os.environ.get("CFLAGS", ""):
    FLAGS.remove("-O2")  # whoever builds has chosen a level, and the last one named would win
if sys.platform != "win32" and "-g" not in os.environ.get("CFLAGS", ""):
    FLAGS.append("-g0")  # Python's own flags may ask for debug information, which holds the folder of the build

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "freethreading_compatible": False,
}
SHARED_CODE = "textcat._cython"  # a module that Cython writes: the code of memory views, which others need


class BuildWithShipped(build_py):
    """Copy the shipped corpora beside the modules (a checkout finds them at its top level instead)."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if not getattr(self, "editable_mode", False):
            self._ship()

    def _ship(self) -> None:
        for source in sorted(SHIPPED.rglob("*")):
            if source.suffix in {".toml", ".sgm", ".gz"} and source.is_file():
                target = Path(self.build_lib, "textcat", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


class BuildInParallel(build_ext):
    """Translate the modules by Cython and compile them, as many at once as there are processors."""

    def build_extensions(self) -> None:
        """Build as usual, after all modules have been translated; their memory views share the code of one of them."""
        from Cython.Build import cythonize

        self.parallel = self.parallel or os.cpu_count()
        stale = [extension for extension in self.extensions if self._fresh(extension) is None]
        translated = cythonize(
            stale,
            nthreads=self.parallel,
            force=self.force,
            quiet=not self.verbose,
            shared_utility_qualified_name=SHARED_CODE,
            compiler_directives=DIRECTIVES,
        )
        for extension, c_code in zip(stale, translated, strict=True):
            extension.sources = c_code.sources
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Build as usual; take a module as it is if an editable installation finds it newer than all sources."""
        if built := self._fresh(ext):
            target = Path(self.get_ext_fullpath(ext.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built, target)
        else:
            super().build_extension(ext)

    def _fresh(self, ext: Extension) -> Path | None:
        built = Path(*ext.name.split(".")).with_name(Path(self.get_ext_filename(ext.name)).name)
        sources = [
            Path("setup.py"),
            *(path for end in ("pyx", "pxd", "h") for path in Path("textcat").rglob(f"*.{end}")),
        ]
        newest = max(path.stat().st_mtime for path in sources)
        return built if self.editable_mode and built.exists() and built.stat().st_mtime > newest else None


class WheelWithBill(bdist_wheel):
    """Put a bill of materials (SBOM, in CycloneDX's format) into the wheel, where PEP 770 wants it."""

    def write_wheelfile(self, wheelfile_base: str, *args: Any, **kwargs: Any) -> None:
        """Write the file WHEEL as usual, then the bill beside it."""
        super().write_wheelfile(wheelfile_base, *args, **kwargs)
        folder = Path(wheelfile_base, "sboms")
        folder.mkdir()
        bill = bill_of_materials(self.distribution)
        (folder / f"{self.distribution.get_name()}.cdx.json").write_text(json.dumps(bill, indent=1), encoding="utf-8")


def bill_of_materials(distribution: Any) -> dict[str, Any]:
    """Return what is inside the wheel, and what it requires: optional is what only extras bring."""
    name, version = distribution.get_name(), distribution.get_version()
    extras = {name: asked for name, asked in distribution.extras_require.items() if name not in WORKSHOP}
    optional = [requirement for asked in extras.values() for requirement in asked]
    itself = {**_component(name, version, "MIT"), "bom-ref": name, "description": distribution.get_description()}
    components = [*_compiled_in(), *_required(distribution.install_requires, "required")]
    listed = {component["name"] for component in (itself, *components)}
    components += [each for each in _required(optional, "optional") if each["name"] not in listed]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [each["bom-ref"] for each in components]}],
    }
    bill["serialNumber"] = f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(bill))}"
    if seconds := os.environ.get("SOURCE_DATE_EPOCH"):  # without it, two builds have the same bill, too
        bill["metadata"]["timestamp"] = datetime.fromtimestamp(int(seconds), timezone.utc).isoformat()
    return bill


def _component(name: str, version: str | None, licence: str | None) -> dict[str, Any]:
    """Describe a package of the package index: without a version where a requirement leaves it open."""
    component: dict[str, Any] = {"type": "library", "name": name, "purl": f"pkg:pypi/{name.lower().replace('_', '-')}"}
    if version:
        component |= {"version": version, "purl": f"{component['purl']}@{version}"}
    return component | ({"licenses": [{"license": {"id": licence}}]} if licence else {})


def _compiled_in() -> list[dict[str, Any]]:
    """Return Cython, of whose helping functions a part is in every compiled module."""
    from Cython import __version__ as version

    return [{**_component("Cython", version, "Apache-2.0"), "bom-ref": "Cython", "scope": "required"}]


def _required(requirements: list[str], scope: str) -> list[dict[str, Any]]:
    """Return a component for each package of requirements such as "joblib>=1.3", in alphabetical order."""
    found = {}
    for requirement in sorted(map(str, requirements)):
        name = re.split(r"[^A-Za-z0-9._-]", requirement)[0]
        asked = {"name": "textcat:requirement", "value": requirement}
        found[name] = {**_component(name, None, None), "bom-ref": name, "scope": scope, "properties": [asked]}
    return [*found.values()]


if __name__ == "__main__":  # not in a process that translates
    modules = [
        Extension(SHARED_CODE, [], extra_compile_args=FLAGS),
        *(
            Extension(
                ".".join(source.with_suffix("").parts),
                [str(source)],
                depends=[str(header) for header in (*Path("textcat").glob("*.h"), *source.parent.glob("*.h"))],
                extra_compile_args=FLAGS,
            )
            for source in sorted(Path("textcat").rglob("*.pyx"))
        ),
    ]
    setup(
        ext_modules=modules,
        cmdclass={"bdist_wheel": WheelWithBill, "build_py": BuildWithShipped, "build_ext": BuildInParallel},
    )

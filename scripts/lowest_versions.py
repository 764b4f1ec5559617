"""Print the lowest versions that pyproject.toml allows, as constraints of pip: `lowest_versions.py [EXTRA...]`.

A lower bound is a promise: scripts/wheel --check installs the wheel by these constraints, and tries it.
"""

import sys
from pathlib import Path

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lowest_versions(extras: list[str]) -> dict[str, str]:
    """Return the lowest version of each package that textcat requires here, by default or for some extras.

    ValueError is raised for a requirement without a lower bound, and for one that is given twice with two bounds.
    """
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    lowest: dict[str, str] = {}
    for requirement in map(Requirement, lines):
        if requirement.name == project["name"] or (requirement.marker and not requirement.marker.evaluate()):
            continue
        bounds = [part.version for part in requirement.specifier if part.operator == ">="]
        if len(bounds) != 1 or lowest.setdefault(requirement.name, bounds[0]) != bounds[0]:
            raise ValueError(f"{requirement} has no lower bound, or another one elsewhere: mend pyproject.toml.")
    return lowest


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in lowest_versions(sys.argv[1:]).items()), sep="\n")

"""Check the licences of what textcat requires, with all extras for users: `python scripts/licences.py [--write]`.

A sentence on standard error names each package whose licence is unknown, or is not one that a program under MIT can
require without terms for those who pass it on, and the exit code is then 1. With --write, the table of
docs/project/licences.md is written anew.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

DISTRIBUTION = "textcat-margin"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "project" / "licences.md"
TABLE = re.compile(r"(?<=<!-- licences -->\n).*?(?=<!-- end of licences -->)", re.DOTALL)
FOR_DEVELOPERS = {"all", "ci", "dev", "docs", "test"}  # extras; "all" is all others
# Permissive ones, and MPL, whose terms end at the files of the package.
ACCEPTED = {
    *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "HPND", "ISC", "MIT"),
    *("MIT-0", "MIT-CMU", "MPL-1.1", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"),
}
# Of which tests have no use, so that they may be absent.
ABSENT = {"tokenizers": "Apache-2.0"}
# What packages write that do not use the identifiers of SPDX: by the words of classifiers and of the old field.
_IDENTIFIERS = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def canonical(name: str) -> str:
    """Return the name of a package as the package index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required_packages() -> dict[str, set[str]]:
    """Return the names of all packages that textcat requires, also by others, and by which extras: "" is by default."""
    extras = set(distribution(DISTRIBUTION).metadata.get_all("Provides-Extra", [])) - FOR_DEVELOPERS
    found = defaultdict(set)
    for extra in ("", *extras):
        for name in _closure(DISTRIBUTION, {extra}) - {DISTRIBUTION}:
            found[name].add(extra)
    return {name: {""} if "" in by else by for name, by in sorted(found.items())}


def _closure(name: str, extras: set[str]) -> set[str]:
    """Return the names of a package and of what it requires with some extras, here, with what that requires."""
    found: dict[str, set[str]] = {}
    waiting = [(name, extras | {""})]
    while waiting:
        name, extras = waiting.pop()
        if extras <= found.setdefault(canonical(name), set()):
            continue
        found[canonical(name)] |= extras
        for requirement in map(Requirement, _installed(name).requires or [] if _installed(name) else []):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append((requirement.name, requirement.extras | {""}))
    return {*found}


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def is_installed(name: str) -> bool:
    """Return whether a package is installed here."""
    return _installed(name) is not None


def licence_of(name: str) -> str:
    """Return the licence of a package as it declares it, by identifiers of SPDX where possible; "" if it is unknown."""
    installed = _installed(name)
    return licence_in(installed.metadata) if installed else ABSENT.get(name, "")


def licence_in(metadata) -> str:
    """Return the licence of a package, given its metadata: of several classifiers, all are named."""
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [each.split(" :: ")[-1] for each in metadata.get_all("Classifier", []) if each.startswith("License")]
    if classifiers:
        return " and ".join(_IDENTIFIERS.get(each, each) for each in classifiers)
    field = (metadata.get("License") or "").strip()
    return _IDENTIFIERS.get(field, field) if len(field.splitlines()) == 1 else ""


def is_accepted(licence: str) -> bool:
    """Return whether an expression of licences is accepted: of several that hold, all; of a choice, at least one."""
    while inner := re.search(r"\(([^()]*)\)", licence):
        licence = licence.replace(inner[0], "MIT" if is_accepted(inner[1]) else "refused")
    choices = re.split(r"\s+or\s+", licence, flags=re.IGNORECASE)
    return any(ACCEPTED.issuperset(re.split(r"\s+and\s+", choice, flags=re.IGNORECASE)) for choice in choices)


def refusals(licences: dict[str, str]) -> Iterable[str]:
    """Give a sentence for each package whose licence is unknown or not accepted."""
    for name, licence in licences.items():
        if not licence:
            yield f"The licence of {name} is unknown: is it installed, and what does it declare?"
        elif not is_accepted(licence):
            yield f"{name} is under {licence}, which scripts/licences.py does not accept: look at its terms."


def table(packages: dict[str, set[str]]) -> str:
    """Return the table of the page, as Markdown."""
    names = defaultdict(list)
    for name, by in packages.items():
        extras = ", ".join(f"`{extra}`" for extra in sorted(by) if extra)
        names[extras or "default", licence_of(name)].append(name)
    rows = [
        f"| {comes_with} | {licence} | {', '.join(named)} |" for (comes_with, licence), named in sorted(names.items())
    ]
    return "\n".join(["| comes with | licence | packages |", "|---|---|---|", *rows, ""])


def main() -> int:
    packages = required_packages()
    if "--write" in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(TABLE.sub(lambda _: table(packages), page), encoding="utf-8")
    sentences = [*refusals({name: licence_of(name) for name in packages})]
    print(*sentences, sep="\n", end="\n" * bool(sentences), file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())

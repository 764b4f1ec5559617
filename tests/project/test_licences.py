"""What textcat requires may be passed on with it, and is listed."""

import re
from email.message import Message

import licences
import pytest
from cases import every
from packaging.requirements import Requirement


def metadata(*fields):
    message = Message()
    for name, value in fields:
        message[name] = value
    return message


def test_every_required_package_has_an_accepted_licence():
    packages = licences.required_packages()
    unknown = {name for name in packages if licences.licence_of(name) == ""}
    if absent := sorted(name for name in unknown if not licences.is_installed(name)):
        pytest.skip(f"{', '.join(absent)} of the extras are not installed")
    assert {"numpy", "spacy", "thinc", "rdflib"} <= {*packages}
    assert packages["numpy"] == {""}
    assert packages["rdflib"] == {"skos"}
    assert [*licences.refusals({name: licences.licence_of(name) for name in packages})] == []


def test_the_page_lists_what_is_required_directly():
    rows = re.findall(r"^\| .* \| .* \| (.*) \|$", licences.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name for row in rows for name in row.split(", ")}
    asked = licences.distribution(licences.DISTRIBUTION).requires
    for requirement in map(Requirement, asked):
        markers = str(requirement.marker or "")
        for_users = not any(f'"{extra}"' in markers for extra in licences.FOR_DEVELOPERS)
        if for_users and "python_version" not in markers:
            assert licences.canonical(requirement.name) in listed


@every(
    "fields, licence",
    [
        ([("License-Expression", "MIT OR Apache-2.0"), ("License", "see below")], "MIT OR Apache-2.0"),
        ([("License", "MIT"), ("Classifier", "License :: OSI Approved :: BSD License")], "BSD"),
        ([("Classifier", "License :: OSI Approved :: MIT License"), ("Classifier", "Topic :: Text")], "MIT"),
        ([("License", "Apache 2.0")], "Apache-2.0"),
        ([("License", "Copyright (c) 2001\nAll rights reserved")], ""),
        ([], ""),
    ],
)
def test_a_licence_is_read_from_what_a_package_declares(fields, licence):
    assert licences.licence_in(metadata(*fields)) == licence


@every(
    "licence, is_accepted",
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("MPL-1.1 OR GPL-2.0-only OR LGPL-2.1-or-later", True),
        ("MIT and BSD", True),
        ("GPL-3.0-only", False),
        ("MIT AND (GPL-2.0-only OR AGPL-3.0-only)", False),
        ("MIT AND AGPL-3.0-or-later", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("Proprietary", False),
    ],
)
def test_licences_that_ask_more_of_those_who_pass_on_a_program_are_refused(licence, is_accepted):
    assert licences.is_accepted(licence) is is_accepted
    assert len([*licences.refusals({"wheat": licence})]) == (not is_accepted)


def test_an_unknown_licence_is_refused():
    assert licences.licence_of("no-such-package") == ""
    (sentence,) = licences.refusals({"no-such-package": ""})
    assert "no-such-package is unknown" in sentence

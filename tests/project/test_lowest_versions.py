"""Each requirement has one lower bound, and a wheel is tried with these versions."""

from cases import every
from lowest_versions import lowest_versions

USERS = [
    "cluster",
    "documents",
    "embeddings",
    "hub",
    "lang",
    "parquet",
    "pictures",
    "serve",
    "skos",
    "tune",
    "watch",
    "web",
    "zst",
]


def test_each_requirement_has_one_lower_bound():
    lowest = lowest_versions(USERS)
    assert {"numpy", "scipy", "typer", "lxml", "fastapi"} <= {*lowest}


@every("package", ["scipy", "typer", "spacy"])
def test_a_package_of_its_lowest_version_is_asked_for_by_its_exact_number(package):
    assert lowest_versions([])[package][0].isdigit()

"""Settings: what a text means where a type is wanted."""

from collections.abc import Mapping, Sequence

import pytest
from cases import every

from textcat.base.settings import describe_type, has_type, parse_value

# --- settings --------------------------------------------------------------------------------------------------------


@every(
    "text, annotation, value",
    [
        ("5", int, 5),
        ("5", float, 5),
        (".5", float, 0.5),
        ("1e-3", float | None, 1e-3),
        ("true", bool, True),
        ("prevalence", float | str, "prevalence"),
        ('"5"', str, "5"),
        ("5", str, "5"),
        ("{ title = 2, body = 1 }", Mapping[str, float] | None, {"title": 2, "body": 1}),
        ('["title"]', bool | Sequence[str], ["title"]),
        ("a = 1\nb = 2", str, "a = 1\nb = 2"),
    ],
)
def test_a_text_has_the_value_that_the_type_allows(text, annotation, value):
    parsed = parse_value(text, annotation)
    assert (parsed, type(parsed)) == (value, type(value))


@every(
    "text, annotation, wanted",
    [
        ("1", bool, "true or false"),
        ("true", int, "a whole number"),
        ("x", int | None, "a whole number"),
        ("{ title = 'x' }", Mapping[str, float], "a table of numbers"),
        ("[1]", bool | Sequence[str], "true or false or a list of strings"),
    ],
)
def test_a_text_of_another_type_is_refused_with_the_type(text, annotation, wanted):
    with pytest.raises(ValueError, match=f"^give {wanted}$"):
        parse_value(text, annotation)
    assert describe_type(annotation) == wanted
    assert not has_type(object(), annotation)

"""Values found in the bytes of JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from textcat.reading.formats.json_values import members_of, values_in

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)
containers = st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=6), values, max_size=4)


@given(containers, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_each_value_is_found_in_its_place(container, indent, is_ascii):
    data = b" " + json.dumps(container, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass") + b" ,"
    found, closing = values_in(data, 1)
    assert closing == len(data) - 3
    listed = [json.loads(data[one.start : one.end].decode("utf-8", "surrogatepass")) for one in found]
    if isinstance(container, list):
        assert listed == container
        assert all(one.begin == one.start and not one.name for one in found)
    else:
        assert dict(zip([one.name for one in found], listed, strict=True)) == container
        assert all(data[one.begin : one.begin + 1] == b'"' for one in found)
        assert members_of(data, 1).keys() == container.keys()


def test_of_members_with_the_same_name_the_last_one_counts_as_for_python():
    assert members_of(b'{"a": 1, "b":2 , "a":[3]}', 0)["a"][:2] == (21, 24)


def test_a_text_that_is_not_closed_ends_with_the_data():
    values, end = values_in(b'[1, "a\\", {}, []', 0)
    assert [(one.start, one.end) for one in values] == [(1, 2)]
    assert end == 16

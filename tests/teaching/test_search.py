"""Documents are found by words and by ids, page by page."""

from teaching_work import subject_of


def test_a_judgement_made_from_a_search_teaches_too(session):
    before = session.scores("strike").copy()
    found = session.search("gold bullion", "strike", limit=3)
    assert found.n_found > 3
    assert all(subject_of(each.position) == "gold" for each in found.documents)
    session.answer("strike", found.documents[0].position, "no", source="search")
    assert (session.scores("strike") != before).any()
    again = session.search("gold bullion", "strike", limit=3).documents[0]
    assert (again.answer, again.label) == ("no", False)
    assert session.judgements("strike")[0].source == "search"


def test_a_search_pages_and_finds_ids(session):
    everything = [each.position for each in session.search("gold", limit=200).documents]
    assert everything == [
        each.position for k in range(0, 200, 7) for each in session.search("gold", None, k, 7).documents
    ]
    assert session.search("d77").documents[0].id == "d77"
    assert session.search("xyzzy").n_found == 0

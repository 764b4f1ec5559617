"""Documents are found by words and by ids, page by page."""

from teaching_work import subject_of

from textcat.teaching.search import Search


def test_a_judgement_made_from_a_search_teaches_too(session):
    before = session.view.scores("strike").copy()
    found = Search(session.view).find("gold bullion", "strike", limit=3)
    assert found.n_found > 3
    assert all(subject_of(each.position) == "gold" for each in found.documents)
    session.answer("strike", found.documents[0].position, "no", source="search")
    assert (session.view.scores("strike") != before).any()
    again = Search(session.view).find("gold bullion", "strike", limit=3).documents[0]
    assert (again.answer, again.label) == ("no", False)
    assert session.view.judgements("strike")[0].source == "search"


def test_a_search_pages_and_finds_ids(session):
    everything = [each.position for each in Search(session.view).find("gold", limit=200).documents]
    assert everything == [
        each.position for k in range(0, 200, 7) for each in Search(session.view).find("gold", None, k, 7).documents
    ]
    assert Search(session.view).find("d77").documents[0].id == "d77"
    assert Search(session.view).find("xyzzy").n_found == 0

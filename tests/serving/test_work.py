"""Documents of several requests are tagged together."""

import asyncio

from serving_requests import STORY, TAG, ask, assert_problem, post

import textcat
from textcat.serving import work


def test_requests_of_one_moment_are_tagged_together_and_each_gets_its_own(service, store, newswire_model):
    tagger = textcat.load(newswire_model)
    texts = [f"{STORY} Gold fell. {'wheat ' * (i % 7)}{'gold ' * (i % 5)}" for i in range(60)]
    tops = [None, 1, 2]
    requests = [("POST", TAG, {"json": {"text": text, "top": tops[i % 3]}}) for i, text in enumerate(texts)]
    for i, answer in enumerate(ask(service, *requests)):
        (tags,) = tagger.tag([texts[i]], top=tops[i % 3])
        assert [row["topic"] for row in answer.json()["tags"]] == [tag.topic for tag in tags]


def test_batches_are_tagged_one_after_the_other_and_may_have_a_number_of_tags(service, store, monkeypatch):
    running, most = [0], [0]
    tags = work.Work.tags

    def counted(self, documents, choice):
        running[0] += 1
        most[0] = max(most[0], running[0])
        return tags(self, documents, choice)

    async def batches():
        async def pause():
            await asyncio.sleep(0.01)
            running[0] -= 1

        await asyncio.gather(*(store["news"].work.tag_all([STORY] * 300, work.Choice(), pause) for _ in range(3)))

    with monkeypatch.context() as patch:
        patch.setattr(work.Work, "tags", counted)
        asyncio.run(batches())
    assert most == [1]
    monkeypatch.setattr(work, "MOST_ANSWERED", 100)
    documents = [{"text": STORY}] * 50
    few = post(service, f"{TAG}-batch", json={"documents": documents, "top": 2})
    assert [len(row["tags"]) for row in few.json()["results"]] == [2] * 50
    for choice in ({"all_topics": True}, {"top": 3}, {"min_probability": 0.0}):
        assert_problem(post(service, f"{TAG}-batch", json={"documents": documents, **choice}), 413, "than 100 tags")

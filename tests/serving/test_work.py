"""Documents of several requests are tagged together."""

from serving_requests import STORY, TAG, ask

import textcat


def test_requests_of_one_moment_are_tagged_together_and_each_gets_its_own(service, store, newswire_model):
    tagger = textcat.load(newswire_model)
    texts = [f"{STORY} Gold fell. {'wheat ' * (i % 7)}{'gold ' * (i % 5)}" for i in range(60)]
    tops = [None, 1, 2]
    requests = [("POST", TAG, {"json": {"text": text, "top": tops[i % 3]}}) for i, text in enumerate(texts)]
    for i, answer in enumerate(ask(service, *requests)):
        (tags,) = tagger.tag([texts[i]], top=tops[i % 3])
        assert [row["topic"] for row in answer.json()["tags"]] == [tag.topic for tag in tags]

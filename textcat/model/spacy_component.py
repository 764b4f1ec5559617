"""Tag documents in a spaCy pipeline: `nlp.add_pipe("textcat_paum", config={"model": …})` fills `doc.cats`."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.util import from_bytes, minibatch, to_bytes

from textcat.base.disk import write_atomically
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST
from textcat.model import storage
from textcat.model.manifest import FILES, MAY_BE
from textcat.model.rules import path_beside
from textcat.model.tagger import Tagger

FACTORY = "textcat_paum"
EXTENSION = "textcat_topics"
_RULES = "rules.toml"  # key of the house rules among a model's files in bytes
_SCORES = {"cats_score": 1.0, "cats_micro_f": None, "cats_macro_f": None, "cats_macro_auc": None}

if not Doc.has_extension(EXTENSION):
    Doc.set_extension(EXTENSION, default=None)


class TopicTagger(Pipe):
    """Tag documents of spaCy: write a value for each topic to `doc.cats`, and the tags to `doc._.textcat_topics`.

    `doc.cats` gets the calibrated probability of every topic, or its score if the model has no probabilities; entries
    of other components stay. `doc._.textcat_topics` gets the document's topics, the highest score first, as `textcat
    tag` prints them. The text is read as the body of a document, with the tokenizer that the model was trained with,
    not with that of the pipeline.

    If `tagger` is None, call `from_disk` or `from_bytes` first. If a threshold is given, a document has the topics
    whose value in `doc.cats` is above it, and the scorer uses it, too; otherwise, the model's own thresholds decide,
    one per topic, and the scorer uses 0.5. If labels are given, only these topics are written. TextcatError is raised
    if the model lacks one of these topics, or if the model has probabilities and the threshold is not between 0 and 1.
    """

    def __init__(
        self,
        tagger: Tagger | None,
        name: str = FACTORY,
        *,
        threshold: float | None = None,
        labels: list[str] | None = None,
    ) -> None:
        self.name = name
        self.threshold = threshold
        self._wanted = labels
        self._tagger: Tagger | None = None
        if tagger is not None:
            self._take(tagger)

    @property
    def tagger(self) -> Tagger:
        """The model; TextcatError is raised if no model has been read yet."""
        if self._tagger is None:
            raise TextcatError(
                f"The component {self.name!r} has no model: name its folder, as in "
                f'nlp.add_pipe("{FACTORY}", config={{"model": "FOLDER"}}), or load a saved pipeline.'
            )
        return self._tagger

    @property
    def labels(self) -> tuple[str, ...]:
        """The topics that the component writes, in the order of the model."""
        return tuple(self.tagger.topics[j] for j in self._columns)

    @property
    def label_data(self) -> list[str]:
        """The topics of `labels` as a list, which spaCy stores."""
        return list(self.labels)

    def __call__(self, doc: Doc) -> Doc:
        """Tag a document: write to its `cats` and `_.textcat_topics`, and return it."""
        self._fill([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tag a stream of documents in batches, and yield them in order."""
        on_error = self.get_error_handler()
        for docs in minibatch(stream, size=batch_size):
            try:
                self._fill(docs)
            except Exception as error:
                on_error(self.name, self, docs, error)
            else:
                yield from docs

    def score(self, examples: Iterable[Any], **_: Any) -> dict[str, Any]:
        """Return the measures of `Scorer.score_cats` on annotated examples; `nlp.evaluate` calls this."""
        threshold = 0.5 if self.threshold is None else self.threshold
        measures: dict[str, Any] = Scorer.score_cats(
            examples, "cats", labels=self.labels, multi_label=True, threshold=threshold
        )
        return measures

    def to_disk(self, path: str | Path, **_: Any) -> None:
        """Write the whole model to a folder, and its house rules beside it; `textcat tag` can read both.

        An earlier file of rules is replaced, or removed if there are none. An argument `exclude` is ignored.
        """
        if (rules := self.tagger.decisions.rules) is None:
            path_beside(path).unlink(missing_ok=True)
        else:
            write_atomically(path_beside(path), rules.source)
        storage.save(self.tagger, path)

    def from_disk(self, path: str | Path, **_: Any) -> "TopicTagger":
        """Read the model from a folder that `to_disk` has written, with its house rules; return the component."""
        self._take(storage.load(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model's files and its house rules as one byte string, without the excluded ones."""
        with tempfile.TemporaryDirectory() as folder:
            model = storage.save(self.tagger, Path(folder, "model"))
            getters = {path.name: path.read_bytes for path in sorted(model.iterdir())}
            if self.tagger.decisions.rules is not None:
                getters[_RULES] = path_beside(model).read_bytes
            written: bytes = to_bytes(getters, exclude)
        return written

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "TopicTagger":
        """Read the model from the bytes that `to_bytes` has returned, without excluded files; return the component."""
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "model")
            model.mkdir()
            setters = {name: (model / name).write_bytes for name in (MANIFEST, *FILES, *MAY_BE)}
            from_bytes(data, {**setters, _RULES: path_beside(model).write_bytes}, exclude)
            self._take(storage.load(model, mapped=False))
        return self

    def _take(self, tagger: Tagger) -> None:
        unknown = set(self._wanted or ()) - set(tagger.topics)
        if unknown:
            raise TextcatError(
                f"The model of the component {self.name!r} has no topic {min(unknown)!r}; "
                "`textcat topics MODEL` lists what it has."
            )
        if self.threshold is not None and not 0 <= self.threshold <= 1 and tagger.decisions.calibration is not None:
            raise TextcatError(
                f"The threshold {self.threshold} of the component {self.name!r} is no probability: give one from 0 to "
                "1, or none for the thresholds of the model."
            )
        wanted = set(tagger.topics if self._wanted is None else self._wanted)
        self._columns = np.array([j for j, topic in enumerate(tagger.topics) if topic in wanted], np.intp)
        self._tagger = tagger

    def _fill(self, docs: list[Doc]) -> None:
        if not docs:
            return
        texts = [doc.text for doc in docs]
        scores, has_terms = self.tagger.scored(texts)
        curves = self.tagger.decisions.calibration
        values = scores if curves is None else curves.probabilities(scores)
        labels, topics_of_docs = self.labels, self._topics(texts, scores, values, has_terms)
        for doc, row, topics in zip(docs, values[:, self._columns].tolist(), topics_of_docs, strict=True):
            doc.cats.update(zip(labels, row, strict=True))
            doc._.set(EXTENSION, topics)

    def _topics(
        self, texts: list[str], scores: np.ndarray, values: np.ndarray, has_terms: np.ndarray
    ) -> list[list[str]]:
        topics, decisions = self.tagger.topics, self.tagger.decisions
        if self.threshold is None:
            above = decisions.decide(scores, has_terms, decisions.holding(texts))
        else:
            above = (values > self.threshold) & has_terms[:, None]
        above &= np.isin(np.arange(len(topics)), self._columns)
        places = [np.flatnonzero(has) for has in above]
        orders = (here[np.argsort(-row[here], kind="stable")] for row, here in zip(scores, places, strict=True))
        return [[topics[j] for j in order.tolist()] for order in orders]


@Language.factory(
    FACTORY,
    assigns=["doc.cats", f"doc._.{EXTENSION}"],
    default_config={"model": None, "threshold": None, "labels": None},
    default_score_weights=_SCORES,
)
def make(
    nlp: Language, name: str, model: str | None, threshold: float | None, labels: list[str] | None
) -> Callable[[Doc], Doc]:
    """Return the component, with the model of the folder `model`.

    While spaCy loads a saved pipeline, the argument `model` is ignored, because the pipeline has a copy of the model.

    Parameters
    ----------
    nlp, name, model, threshold, labels
        As spaCy gives them, and as for `TopicTagger`.
    """
    # the only sign that spaCy is loading a pipeline: the components that the pipeline's meta.json names
    saved = name in getattr(nlp, "_meta", {}).get("components", ())
    tagger = None if model is None or saved else storage.load(model)
    return TopicTagger(tagger, name, threshold=threshold, labels=labels)

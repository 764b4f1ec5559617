"""Check a corpus, a recipe and options before training, and warn of probable mistakes."""

import os
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from textcat.base.errors import TextcatError, did_you_mean
from textcat.base.surrogates import escape_undecodable
from textcat.corpus.documents import Corpus, topic_counts
from textcat.evaluation.bands import MANY_TOPICS
from textcat.features.scripts import SPACY
from textcat.features.store import check_target
from textcat.model.support import checked_keep_support
from textcat.reading.document import Document
from textcat.reading.labels import NO, YES, folded_name, seen_name
from textcat.recipes.recipe import Recipe

# Languages written without spaces, by their scripts; a text with kana is Japanese, even if it has Chinese characters.
_UNSPACED = {
    "ja": re.compile("[\u3040-\u30ff\u3400-\u9fff]{5,}"),
    "th": re.compile("[\u0e00-\u0e7f]{5,}"),
    "zh": re.compile("[\u3400-\u9fff]{5,}"),
}
_KANA = re.compile("[\u3040-\u30ff]")
_CUT_THEM = "Leave out segmenter = 'spacy' in [tokens] of the recipe, or name their language by lang = {code!r} there"
SCRIPT_SAMPLE = 500  # number of documents sampled to identify the script of a corpus
MOST_KEPT = 20_000  # number of training documents above which a model keeps support documents only on request
_NOT = re.compile(r"(?:non|not|no)[ _-]?(.+)")
_SEPARATORS = (";", "|", ",", "/")
_MISSING = frozenset({"<na>", "n/a", "na", "nan", "nat", "none", "null"})
_N_NAMED = 5  # number of topics that a message lists
_JOINED_SHARE = 0.2  # if at least this share of the topics contain the same character, it is taken for a separator


@dataclass(frozen=True)
class TrainingOptions:
    """The options of training that change no score; `textcat.train` explains them."""

    n_jobs: int | None = None
    rows_dir: str | os.PathLike[str] | None = None
    keep_support: str | None = None
    updatable: bool = False


OPTIONS = TrainingOptions()


def check_training(corpus: Corpus, recipe: Recipe, options: TrainingOptions = OPTIONS) -> str:
    """Check that a corpus can be trained on by a recipe; return what the model keeps of its support documents.

    Support documents are the training documents that the weights are sums of. If the options leave it open, the size of
    the corpus, the recipe and `rows_dir` decide. Raise TextcatError if the corpus has no topic, `rows_dir` is not free,
    the recipe cannot be followed, it asks for promises and too few documents differ, support documents are to be kept
    although the recipe has a shortlist (scores only the topics nearest to a document), a topic or an id cannot be
    saved, or the model is to be updatable and two documents have the same id.

    The result is "none", "ids" or "texts", as in the argument `keep_support` of `textcat.train`.
    """
    _check_any_topic(corpus)
    if options.rows_dir is not None:
        check_target(options.rows_dir)
    recipe.check()
    if recipe.promise.is_asked:
        _check_promise(corpus, recipe)
    kept = checked_keep_support(options.keep_support)
    if kept is None:  # data that makes a model much larger is kept only on request
        few = len(corpus.train) <= MOST_KEPT
        kept = "ids" if few and options.rows_dir is None and not recipe.topics.shortlist else "none"
    if recipe.topics.shortlist and kept != "none":
        raise TextcatError(
            f"Recipe {recipe.name} has a shortlist, whose topics are trained on documents of their own: "
            f"no support documents can be kept with it, so keep_support must be 'none', not {kept!r}."
        )
    _check_encodable("corpus", [corpus.name])
    _check_encodable("topic", corpus.topics)
    if kept != "none" or options.updatable:
        _check_encodable("id", (document.id for document in corpus.train))
    documents_of_id = Counter(document.id for document in (*corpus.train, *corpus.test)) if options.updatable else {}
    for id_, n in documents_of_id.items():
        if n > 1:
            raise TextcatError(
                f"Corpus {corpus.name} has two documents of the id {id_!r}, and an updatable model tells documents by "
                "their ids: give each its own."
            )
    return kept


def _check_promise(corpus: Corpus, recipe: Recipe) -> None:
    """Raise TextcatError if the corpus is too small for promises.

    It has too few documents for folds, or many repeat others, and so few differ that folds do not keep these together.
    """
    if len(corpus.train) < recipe.tags.folds:
        raise TextcatError(
            f"Corpus {corpus.name} is too small for promises: it has {len(corpus.train)} training documents, and at "
            f"least {recipe.tags.folds} are needed to hold some out: label more documents, or give up promises."
        )
    if corpus.has_many_repeats and not corpus.groups_repeats:
        n, n_different = len(corpus.train), len(corpus.train) - corpus.n_repeats
        raise TextcatError(
            f"Corpus {corpus.name} is too small for promises: {corpus.n_repeats:,} of {n:,} training documents repeat "
            f"earlier ones, and with {n_different} different ones, each is tested by rankers that saw its repeats: "
            "give at least 20 different documents, or give up promises."
        )


def _check_encodable(what: str, names: Iterable[str]) -> None:
    """Raise TextcatError if a name has a lone surrogate, which no file can hold."""
    for name in names:
        if name != (shown := escape_undecodable(name)):
            raise TextcatError(
                f"The {what} {shown} has half of a surrogate pair, so it cannot be saved: give it another name."
            )


def _check_any_topic(corpus: Corpus) -> None:
    if corpus.topics:
        return
    if in_training := {topic for document in corpus.train for topic in document.topics}:
        raise TextcatError(
            f"No topic of corpus {corpus.name} has documents in both parts (in training, for example, "
            f"{min(in_training)!r}): look at how it is split, or take all topics of the training part."
        )
    if hint := corpus.unlabelled:
        raise TextcatError(f"Corpus {corpus.name} has no topic with a training document, as {hint}.")
    raise TextcatError(f"Corpus {corpus.name} has no topic with a training document: give it labelled documents.")


def warn_of_corpus(corpus: Corpus, recipe: Recipe) -> None:
    """Log a warning for each sign that a corpus was read wrongly, or that held-out figures will be too good.

    Signs are texts that the recipe cannot split into words, topics joined in one name, topics that differ only in
    spelling or that say "no", missing values among the topics, topics that every document labelled for them has,
    names in `labelled_for` that are no topics, and documents that repeat others.
    """
    warn_if_unsegmented(corpus.sample_train(SCRIPT_SAMPLE), recipe)
    _warn_of_joined_topics(corpus.topics)
    _warn_of_topics_written_alike(corpus.topics)
    _warn_of_topics_that_say_no(corpus.topics)
    _warn_of_missing_values(corpus.topics, corpus.train)
    _warn_of_topics_everywhere(corpus)
    _warn_of_unknown_names_labelled_for(corpus)
    warn_of_repeats(corpus)


def warn_of_repeats(corpus: Corpus, *, measures_each: bool = False) -> None:
    """Warn if many training documents repeat others, and say whether folds keep them together: see `Corpus.groups`.

    With `measures_each`, each document of a group is measured, not only the group.
    """
    if not corpus.has_many_repeats:
        return
    n, n_different = len(corpus.train), len(corpus.train) - corpus.n_repeats
    if corpus.groups_repeats:
        measured = "each is measured" if measures_each else "each group is measured once, with the topics of all"
        effect = f"they are held out together with these, and {measured}"
    else:
        effect = (
            f"with {n_different} different ones, thresholds and figures by held-out documents are too good for new ones"
        )
    warnings.warn(
        f"{corpus.n_repeats:,} of {n:,} training documents repeat earlier ones: {effect}. All are trained on; if they "
        "are not to count several times, list them by `textcat duplicates`, and remove them.",
        stacklevel=3,
    )


def warn_if_unsegmented(documents: Sequence[Document], recipe: Recipe) -> None:
    """Warn if documents are written without spaces between words, and the recipe does not split them into words.

    This happens if the recipe uses spaCy's tokenizer for a language that is written with spaces.
    """
    lang = recipe.tokens.lang
    if recipe.tokens.segmenter != SPACY or lang in _UNSPACED:
        return
    texts = [text for document in documents for text in document.zones.values()]
    n_characters = sum(len("".join(text.split())) for text in texts)
    runs = {code: [run for text in texts for run in script.findall(text)] for code, script in _UNSPACED.items()}
    if any(map(_KANA.search, runs["ja"])):
        runs["zh"] = []
    share, code = max((sum(map(len, runs[code])) / max(n_characters, 1), code) for code in ("zh", "th", "ja"))
    if share > 0.2:
        warnings.warn(
            f"{share:.0%} of the characters of the documents stand in runs without spaces, as Chinese, Japanese and "
            f"Thai are written; with the language {lang!r} each run is one term. {_CUT_THEM.format(code=code)}.",
            stacklevel=3,
        )


def _warn_of_joined_topics(topics: Collection[str]) -> None:
    """Warn if many topics are probably lists of topics in one string, such as ``"corn;wheat"``.

    The warning is given if at least a fifth of the topics contain the same separator, such as ";", and their parts
    recur: splitting these topics gives at most as many distinct parts as there are such topics.
    """
    for separator in _SEPARATORS:
        joined = [topic for topic in topics if separator in topic.strip(separator)]
        parts = {part.strip() for topic in joined for part in topic.split(separator)}
        if len(joined) > 1 and len(joined) >= _JOINED_SHARE * len(topics) and len(parts) <= len(joined):
            warnings.warn(
                f"{len(joined):,} of {len(topics):,} topics have a {separator!r}, as {min(joined)!r} has: if it stands "
                f"between topics, give --topics-separator {separator!r} (in Python topics_separator={separator!r}).",
                UserWarning,
                stacklevel=2,
            )
            return


def _warn_of_missing_values(topics: Collection[str], documents: Sequence[Document]) -> None:
    """Warn of a topic whose name is a usual mark of a missing value, such as nan."""
    if missing := sorted(topic for topic in topics if topic.strip().lower() in _MISSING):
        n = sum(missing[0] in document.topics for document in documents)
        those = "this document" if n == 1 else f"these {n:,} documents"
        warnings.warn(
            f"A topic is called {missing[0]!r}, as programs write a value that is missing: if none is meant, leave the "
            f"topics of {those} empty.",
            UserWarning,
            stacklevel=2,
        )


def _warn_of_topics_written_alike(topics: Collection[str]) -> None:
    """Warn of topics that differ only in case, Unicode form or invisible characters, such as "Grain" and "grain"."""
    alike = defaultdict[str, list[str]](list)
    for topic in sorted(topics):
        alike[folded_name(topic)].append(topic)
    if several := [names for names in alike.values() if len(names) > 1]:
        n, (first, second, *_) = sum(map(len, several)), several[0]
        shown = ascii if seen_name(first) == seen_name(second) else repr
        warnings.warn(
            f"{n:,} of {len(topics):,} topics differ from others in case, Unicode form or invisible characters only, "
            f"such as {shown(first)} and {shown(second)}: they are trained as different topics; if they are one, write "
            "it in one way.",
            UserWarning,
            stacklevel=2,
        )


def _warn_of_topics_that_say_no(topics: Collection[str]) -> None:
    """Warn if topics look like answers to one question, such as "yes" and "no", or "spam" and "not spam"."""
    names = {topic.casefold(): topic for topic in topics}
    if names and names.keys() <= YES | NO:
        saying = sorted(names.keys() & NO)
        remedy = "name the field of the topic that they are about by --topics-field (in Python topics=)"
    else:
        saying = [name for name in names if len(names) == 2 and (rest := _NOT.match(name)) and rest[1] in names]
        remedy = "leave the topics of its documents empty"
    if saying:
        warnings.warn(
            f"The topic {names[saying[0]]!r} says that documents do not have a topic, and is trained as a topic of its "
            f"own: if it is none, {remedy}.",
            UserWarning,
            stacklevel=2,
        )


def _warn_of_topics_everywhere(corpus: Corpus) -> None:
    """Warn of topics that all training documents labelled for them have: such topics have no negative example."""
    n_having, n_documents = topic_counts(corpus.train), len(corpus.train)
    judged = [{*d.labelled_for, *d.topics} for d in corpus.train if d.labelled_for is not None]
    n_judged, n_judged_for_all = Counter(chain.from_iterable(judged)), n_documents - len(judged)
    everywhere = [t for t in sorted(corpus.topics) if 0 < n_having[t] == n_judged[t] + n_judged_for_all]
    if not everywhere:
        return
    which, it = f"The topic {everywhere[0]!r} is", "it"
    if len(everywhere) > 1:
        which, it = f"{len(everywhere):,} topics, such as {everywhere[0]!r}, are", "them"
    those, remedy = f"all {n_documents:,} training documents", "such as ones with an empty list of topics"
    if any(n_having[topic] < n_documents for topic in everywhere):
        those = f"all training documents that were labelled for {it}, as their field 'labelled_for' says"
        remedy = f"and labelled for {it}, or correct that field"
    warnings.warn(
        f"{which} on {those}, so there is nothing to learn about {it}: add documents without {it}, {remedy}.",
        UserWarning,
        stacklevel=2,
    )


def _warn_of_unknown_names_labelled_for(corpus: Corpus) -> None:
    """Warn if documents were labelled for what is no topic of any document, such as the name of a person.

    If all were labelled for all topics, the name leaves none out, and is not told.
    """
    if corpus.unjudged(corpus.train) is None:
        return
    known = {*corpus.topics, *corpus.descriptions, *corpus.names}
    known |= {topic for document in (*corpus.train, *corpus.test) for topic in document.topics}
    judged = {document.labelled_for for document in corpus.train if document.labelled_for is not None}
    if unknown := sorted(set(chain.from_iterable(judged)) - known):
        which = f"{unknown[0]!r}, a topic"
        if len(unknown) > 1:
            which = f"{len(unknown):,} topics, such as {unknown[0]!r},"
        hint = did_you_mean(unknown[0], known)
        warnings.warn(
            f"The field 'labelled_for' has {which} that no document has.{hint} A document with this field is no "
            "example of the topics that it does not list: if it does not list topics, rename it.",
            UserWarning,
            stacklevel=2,
        )


def are_single(corpus: Corpus) -> bool:
    """Return whether a corpus has several topics, and each training document, labelled for all, has exactly one."""
    train = corpus.train
    return len(corpus.topics) > 1 and all(len(d.topics) == 1 for d in train) and corpus.unjudged(train) is None


def unevaluated_topics(corpus: Corpus) -> str:
    """Return a line about topics that occur only in the training part, and a line about topics only in the test part.

    A line is left out if there are no such topics, so the result may be "".
    """
    in_training, tested = topic_counts(corpus.train), topic_counts(corpus.test)
    untested, unlearnt = sorted(set(in_training) - set(tested)), sorted(set(tested) - {*in_training, *corpus.topics})
    sentences = []
    if untested and corpus.test:
        trained = "trained but not" if set(untested) <= set(corpus.topics) else "neither trained nor"
        which, (have, are) = _counted_topics(untested, "training")
        sentences.append(f"{which} {have} no test document, and {are} {trained} evaluated: {_first_named(untested)}.")
    if unlearnt and corpus.topic_rule != "both":
        which, (have, are) = _counted_topics(unlearnt, "test")
        count = "as never found" if len(corpus.topics) >= MANY_TOPICS else "in no average"
        counted = f"{'count' if len(unlearnt) > 1 else 'counts'} {count}"
        sentences.append(f"{which} {have} no training document, and {counted}: {_first_named(unlearnt)}.")
    return "\n".join(sentences)


def _counted_topics(topics: Sequence[str], part: str) -> tuple[str, tuple[str, str]]:
    """Return the subject of a sentence, such as "3 topics of the training part", and two verbs, such as (have, are).

    The verbs are singular for one topic. `part` is "training" or "test".
    """
    if len(topics) == 1:
        return f"1 topic of the {part} part", ("has", "is")
    return f"{len(topics):,} topics of the {part} part", ("have", "are")


def _first_named(topics: Sequence[str]) -> str:
    named = ", ".join(topics[:_N_NAMED])
    return f"{named} and {len(topics) - _N_NAMED:,} more" if len(topics) > _N_NAMED else named

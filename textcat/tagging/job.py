"""Tag a batch of the input, in any process; the result has encoded rows of tags, rejections, and counts."""

import gc
import logging
import multiprocessing
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import attrgetter
from platform import node
from typing import TYPE_CHECKING, Any, NamedTuple

from textcat.base.disk import installed_spacy
from textcat.base.errors import TextcatError
from textcat.base.progress import peak_memory
from textcat.model.conditions import languages_of
from textcat.model.manifest import model_id
from textcat.reading import Batch, InputSettings, ItemVersion, Record, Rejection, batch_records
from textcat.reading.dates import day_of, month_of
from textcat.runs.news_version_chunks import encode_versions
from textcat.runs.results import BatchResult, Counts, encode_counted, process_name
from textcat.tagging.groups import GroupsFile, GroupsMark, open_groups
from textcat.tagging.output import ENCODERS, OutputSettings, TaggedRecords

if TYPE_CHECKING:
    import numpy as np

    from textcat.model.tagger import Tagger

log = logging.getLogger(__name__)

_SOURCE, _FIELDS = attrgetter("source"), attrgetter("fields")
UNKNOWN_LANGUAGE = "?"  # language code in counts for documents without a letter
_CACHE_BYTES = 32 << 20  # size of the token cache in each process; with four times as much, tagging is no faster


class ReplacedError(TextcatError):
    """Raised if a job's model, or its file of groups of duplicates, has been replaced by another."""


class Job(NamedTuple):
    """The model and the settings by which a run tags each batch."""

    model: str  # the model's folder, as seen by a worker
    digest: str  # checksum that the model must have
    spacy: str = ""  # version of spaCy that a worker must have, because tokens depend on it; "": any
    input: InputSettings = InputSettings()
    output: OutputSettings = OutputSettings()
    # Models by language: for each language, folder and checksum of its model. They replace the two fields above.
    by_language: tuple[tuple[str, str, str], ...] = ()
    rules: str | None = None  # the text of a file of rules; None: the rules beside each model
    groups: GroupsMark | None = None  # mark that the file of groups of duplicates must have; None: there is none
    keeps_scores: bool = False  # whether results include the bins of all scores, see `textcat.tagging.score_bins`

    @property
    def model_ids(self) -> str:
        """The id of the model or, with models by language, each language with the id of its model, as a text."""
        of_languages = [f"{language} {model_id(digest)}" for language, _, digest in self.by_language]
        return ", ".join(of_languages) or model_id(self.digest)

    def jobs(self) -> "dict[str, Job]":
        """Return the job of each model by the model's language; the only key is "" if there is a single model."""
        if not self.by_language:
            return {"": self}
        parts = self.by_language
        return {language: self._replace(model=model, digest=sum_, by_language=()) for language, model, sum_ in parts}


def tag_batch(job: Job, batch: Batch, all_versions: bool = False) -> BatchResult:
    """Read the records of a batch, tag them, and return their encoded rows, the rejections and the counts.

    With `all_versions`, news items are tagged even if the batch has a newer version of them.
    A TextcatError is raised if the model is missing, has changed since the run began, or needs another spaCy version.
    """
    # imported here, so that a process that only distributes work stays small
    from textcat.model.selection import n_at_once

    taggers, counts = load_taggers(job), Counts()
    tagged = BatchResult([], [], counts, process_name())
    versions: list[ItemVersion] = []
    items = batch_records(batch, job.input, all_versions, None if all_versions else versions)
    while held := list(islice(items, min(n_at_once(tagger.scorer) for tagger in taggers.values()))):
        counts.records += len(held)
        records = [item for item in held if isinstance(item, Record)]
        if job.groups is not None:
            records = _groups_of(job).add_groups(records)
        if job.by_language:
            tag_by_language(taggers, job, records, tagged)
        else:
            tag_records(taggers[""], job, records, tagged)
        tagged.rejections += [item for item in held if isinstance(item, Rejection)]
    counts.add_rejections(tagged.rejections)
    _check_counts(job, batch, tagged)
    tagged.versions = encode_versions(versions)
    tagged.memory = peak_memory() or 0
    return tagged


def _check_counts(job: Job, batch: Batch, tagged: BatchResult) -> None:
    """Raise a RuntimeError if a record of a batch was neither written nor rejected.

    Written plus rejected records must equal the number of records read, counted in two ways.
    """
    counts, rejected = tagged.counts, len(tagged.rejections)
    written = sum(rows.count(b"\n") for rows in tagged.rows) if job.output.to == "jsonl" else counts.tagged
    if not counts.records == written + rejected == counts.tagged + counts.rejected:
        read = f"{counts.records} records up to {batch.source} were read"
        raise RuntimeError(f"{read}, but {written} written and {rejected} rejected")


def tag_by_language(taggers: "dict[str, Tagger]", job: Job, records: list[Record], tagged: BatchResult) -> None:
    """Tag each record by the tagger of its language.

    A record in a language without a tagger is rejected, or written without topics, as the setting `other_languages`
    of the job's output says. Rows, rejections and counts are added to `tagged`.
    """
    from textcat.training.identification import identify_languages, model_language

    languages = identify_languages(record.zones for record in records)
    # for rules with a condition on the language
    if any(tagger.decisions.holding(()) is not None for tagger in taggers.values()):
        named = zip(records, languages, strict=True)
        records = [record if languages_of(record) else record._replace(language=language) for record, language in named]
    tagged.counts.languages.update(language or UNKNOWN_LANGUAGE for language in languages)
    jobs, chosen = job.jobs(), [model_language(language, taggers) for language in languages]
    rows_of = {language: [i for i, of_record in enumerate(chosen) if of_record == language] for language in taggers}
    # scores of a record, and whether it has a term of the model: all records of a language are scored together
    scored: dict[int, Any] = {}
    for language, rows in rows_of.items():
        try:
            scored |= zip(rows, zip(*taggers[language].scored([records[i] for i in rows]), strict=True), strict=True)
        except MemoryError:
            raise
        except Exception:  # raised again where records are tagged, which rejects the records concerned
            log.debug("Records in %s are scored one by one", language, exc_info=True)
    for language, run in groupby(range(len(records)), key=chosen.__getitem__):  # in the order of the input
        positions = list(run)
        in_run = [records[i] for i in positions]
        if language:
            scored_here = [scored[i] for i in positions] if positions[0] in scored else None
            tag_records(taggers[language], jobs[language], in_run, tagged, scored_here)
        elif job.output.other_languages == "untagged":
            _write_untagged(job.output, in_run, tagged)
        else:
            tagged.rejections += [_rejected(records[i], languages[i], taggers) for i in positions]


def _rejected(record: Record, language: str, taggers: "dict[str, Tagger]") -> Rejection:
    languages = ", ".join(taggers)
    reason = (
        f"It is in {language}, and there are models for {languages} only."
        if language
        else "It has no letter to tell its language by."
    )
    return Rejection(record.source, record.position, reason)


def _write_untagged(output: OutputSettings, records: list[Record], tagged: BatchResult) -> None:
    n = len(records)
    rows = TaggedRecords(
        records,
        [[]] * n,
        [None] * n,
        terms=(lambda record, topics: []) if output.explain else None,
        names={} if output.names else None,
    )
    tagged.rows.append(ENCODERS[output.to](rows, output))
    tagged.counts.tagged += n
    tagged.counts.inputs.update(map(_SOURCE, records))
    tagged.counts.untagged += n
    months = [month_of(record.date) for record in records]
    tagged.counts.months.update(months)
    tagged.counts.months_untagged.update(months)
    if not output.shows_counted:
        tagged.counted += b"".join(encode_counted(record.source, record.position, []) for record in records)
    tagged.counts.fields.update(name for record in records for name in record.fields or ())


def tag_records(
    tagger: "Tagger",
    job: Job,
    records: list[Record],
    tagged: BatchResult,
    scored: "list[tuple[np.ndarray, np.bool_]] | None" = None,
) -> None:
    """Tag records, and add their encoded rows and counts to `tagged`; records that cannot be tagged are rejected.

    `job` is the job of this tagger's model, as `Job.jobs` returns it.

    If the records were scored before, `scored` has for each record its scores, and whether it has a term of the model.
    """
    if not records:
        return
    try:
        scores, has_terms = tagger.scored(records) if scored is None else _stacked(scored)
        holding = tagger.decisions.holding(records)
        above, met = tagger.decisions.decide_by_rules(scores, has_terms, holding)
        tagged.rows.append(_encode(tagger, job, records, scores, has_terms, holding, above))
    except MemoryError:  # the run retries with fewer batches at a time
        raise
    except Exception as error:
        if len(records) > 1:
            for record in records:
                tag_records(tagger, job, [record], tagged)
            return
        source, position = records[0].source, records[0].position
        log.warning("%s:%d cannot be tagged", source, position, exc_info=error)
        reason = f"It cannot be tagged ({type(error).__name__}: {error})."
        tagged.rejections.append(Rejection(source, position, reason))
    else:
        counts = tagged.counts
        counts.rules.update(met)
        counts.tagged += len(above)
        counts.inputs.update(map(_SOURCE, records))  # counts by file; the run adds them up by input
        counts.unknown += len(above) - int(has_terms.sum())
        counts.fields.update(chain.from_iterable(filter(None, map(_FIELDS, records))))
        counts.untagged += len(above) - int(above.any(axis=1).sum())
        sizes = above.sum(axis=0)
        days = [day_of(record.date) for record in records]
        _count_by_month(counts, tagger.topics, days, above, has_terms)
        counts.topics.update({tagger.topics[j]: int(sizes[j]) for j in sizes.nonzero()[0].tolist()})
        if job.keeps_scores:
            # imported here, so that a process that only distributes work stays small
            from textcat.tagging.score_bins import encode_frame

            tagged.score_bins += encode_frame(tagger, model_id(job.digest), records, days, scores, above)
        if not job.output.shows_counted:
            topics = ([tagger.topics[j] for j in row.nonzero()[0].tolist()] for row in above)
            of_rows = zip(records, topics, strict=True)
            tagged.counted += b"".join(
                encode_counted(record.source, record.position, named) for record, named in of_rows
            )


def _count_by_month(
    counts: Counts, topics: Sequence[str], days: Sequence[str], above: "np.ndarray", has_terms: "np.ndarray"
) -> None:
    """Count records by the month of their day, as `day_of` returns it.

    The mask `above`, of shape (n_records, n_topics), marks the topics that records get by thresholds and rules,
    whatever topics are written; `has_terms` marks the records that have a term of the model.
    """
    months = [day[:7] for day in days]
    counts.months.update(months)
    has_topics = above.sum(axis=1).tolist()
    for number, has in ((counts.months_untagged, has_topics), (counts.months_unknown, has_terms.tolist())):
        number.update(month for month, is_so in zip(months, has, strict=True) if not is_so)
    rows, columns = above.nonzero()
    of_tags = zip(rows.tolist(), columns.tolist(), strict=True)
    counts.months_topics.update([f"{months[row]} {topics[column]}" for row, column in of_tags])


def _stacked(scored: "list[tuple[np.ndarray, np.bool_]]") -> "tuple[np.ndarray, np.ndarray]":
    """Return the scores of records as an array of shape (n_records, n_topics), and the mask `has_terms`."""
    import numpy as np  # imported here, so that a process that only distributes work stays small

    scores, has_terms = zip(*scored, strict=True)
    return np.stack(scores), np.array(has_terms)


def _encode(
    tagger: "Tagger",
    job: Job,
    records: list[Record],
    scores: "np.ndarray",
    has_terms: "np.ndarray",
    holding: "np.ndarray | None",
    given: "np.ndarray",
) -> bytes:
    # imported here, so that a process that only distributes work stays small
    from textcat.model.selection import reasons_of

    output = job.output
    tags = tagger.select(
        scores,
        top=output.top,
        all_topics=output.all_topics,
        min_probability=output.min_probability,
        has_terms=has_terms,
        holding=holding,
        given=given,
    )

    def terms(record: Record, topics: Sequence[str]) -> list[dict[str, float]]:
        explained = tagger.explain_all(record, topics, output.explain, with_spans=False)
        return [{reason.term: reason.contribution for reason in explanation} for explanation in explained]

    recalls = tagger.decisions.expected_recalls(scores, has_terms, holding).tolist() if output.expected_recall else None
    rows = TaggedRecords(
        records,
        tags,
        [reason and reason.value for reason in reasons_of(has_terms)],
        terms if output.explain else None,
        tagger.topic_names if output.names else None,
        recalls,
        model_id(job.digest),
    )
    return ENCODERS[output.to](rows, output)


@lru_cache(maxsize=1)
def load_taggers(job: Job) -> "dict[str, Tagger]":
    """Load the taggers of a job, by language; a single tagger for all languages has the key "".

    The taggers are cached for the next call with the same job. A TextcatError is raised as by `tag_batch`.
    """
    if job.groups is not None:
        _groups_of(job)
    taggers = {language: load_tagger(of_language) for language, of_language in job.jobs().items()}
    if job.by_language:
        from textcat.training.identification import identify_languages

        identify_languages([{"": "Load the library's model."}])
    if multiprocessing.parent_process() is not None:
        gc.freeze()  # otherwise, garbage collection of loaded objects takes a tenth of a worker's time
    return taggers


def _groups_of(job: Job) -> GroupsFile:
    path = job.output.duplicates
    groups = open_groups(path)
    if groups.mark != job.groups:
        raise ReplacedError(f"{path} is not the file that this run began with: give the command again.")
    return groups


def load_tagger(job: Job) -> "Tagger":
    """Load a tagger restricted by its job's settings: topics, minimum probability, automatic tags only.

    A TextcatError is raised as by `tag_batch`.
    """
    # imported here, so that a process that only distributes work stays small
    from textcat.model.storage import load_versioned

    if job.spacy not in ("", here := installed_spacy()):
        has = here or "none"
        raise TextcatError(f"This run needs spaCy {job.spacy}, but {node()} has {has}: install {job.spacy} there.")
    tagger, digest = load_versioned(job.model, prepare=False, with_rules=job.rules is None)
    if digest != job.digest:
        raise ReplacedError(f"{job.model} is not the model that this run began with: give the command again.")
    tagger.features.tokens_.memo_bytes = _CACHE_BYTES
    if job.rules:
        tagger = tagger.with_rules_of(job.rules)
    if job.output.topics:
        from textcat.model.restrict import restrict_topics

        tagger = restrict_topics(tagger, job.output.topics)
    tagger = replace(tagger, decisions=tagger.decisions.with_options(job.output.min_probability, job.output.automatic))
    tagger.scores([""])  # builds lookup tables of the vocabulary
    return tagger

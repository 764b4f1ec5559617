"""Plan a run: find inputs and models, decide what is written, and list the settings that the output depends on."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from textcat import __version__
from textcat.base.disk import expanded, installed_spacy, resolved
from textcat.base.errors import TextcatError
from textcat.base.folders import MANIFEST
from textcat.model.decisions import why_uncalibrated
from textcat.model.manifest import CALIBRATION, PROMISES, Manifest, read_manifest
from textcat.model.rules import Rules, read_rules, rules_beside, rules_of_model
from textcat.model.topic_names import find_topic
from textcat.reading import (
    START_OVER,
    InputSettings,
    Share,
    Source,
    find_sources,
    named_in_training,
    warn_of_unnamed_texts,
)
from textcat.runs.inputs import facts_of_reading
from textcat.tagging.groups import FIELD, GROUPS, open_groups
from textcat.tagging.job import Job
from textcat.tagging.output import RULES, OutputSettings, check_output, library_versions
from textcat.tagging.rejection_limit import RejectionLimit
from textcat.tagging.summary import Trained

INPUT: InputSettings = InputSettings()
OUTPUT: OutputSettings = OutputSettings()
_AUTO = "auto"  # pseudo-language for identification


class TaggingPlan(NamedTuple):
    """Everything a run needs: model and settings, inputs, the model's topics, and how to distribute the work."""

    job: Job
    sources: Sequence[Source]  # the inputs
    trained: Trained  # topics of the model, or of all models by language
    jobs: int = -1  # number of processes; -1: one per core
    scheduler: str = ""  # address of a Dask cluster; "": this machine
    strict: bool = False  # whether a rejected document ends the run with an error
    start_over: str = START_OVER  # how to begin the run again, as part of a message
    part: Share | None = None  # the share of the inputs to tag, to be merged with others; None: all inputs
    max_rejected: RejectionLimit | None = None  # None: no limit on rejected documents

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the run writes: those that the settings name, or else all topics of the model."""
        return self.job.output.topics or tuple(self.trained.sizes)


def make_plan(
    model: str | os.PathLike[str],
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    input_settings: InputSettings = INPUT,
    output_settings: OutputSettings = OUTPUT,
    *,
    jobs: int = -1,
    scheduler: str = "",
    strict: bool = False,
    lang: str = "",
    part: str = "",
    max_rejected: int | str = "",
) -> TaggingPlan:
    """Find the inputs, read the model's manifest, and return the plan of the run; for parameters, see `tag_archive`.

    A TextcatError is raised if the settings contradict each other, or need topics or probabilities that the model does
    not have.
    """
    check_output(output_settings)
    folder = expanded(model)
    manifests = _manifests_by_language(folder, lang, output_settings)
    if output_settings.min_probability is not None:
        _check_calibrated(folder, manifests.values())
    promising = [f"{PROMISES}.npy" in manifest.files for manifest in manifests.values()]
    if (output_settings.automatic or output_settings.expected_recall) and not all(promising):
        raise TextcatError(
            f"The model {folder} makes no promises: leave out --automatic and --expected-recall, or train it with "
            "--promise."
        )
    trained, kept = _training_counts([*manifests.values()]), output_settings.keep_fields
    topics = tuple(find_topic(trained.sizes, trained.names, topic) for topic in output_settings.topics)
    groups = open_groups(output_settings.duplicates).mark if output_settings.duplicates else None
    if groups is not None:
        kept = tuple(dict.fromkeys((*kept, FIELD)))
    output = output_settings._replace(topics=topics, keep_fields=kept)
    output = output._replace(names=bool(trained.names))
    rules = read_rules(output.rules) if output.rules else None if lang else rules_beside(model)
    if rules and output.topics:
        raise TextcatError("Rules are about all topics of the model: leave out --topic, or the rules.")
    fields = tuple(dict.fromkeys((*kept, *_fields_of_rules(folder, manifests, rules if output.rules else None))))
    reading = input_settings._replace(fields=fields) if fields else input_settings
    sources = find_sources(inputs, reading)
    trained_on = next(filter(None, (named_in_training(manifest.origin) for manifest in manifests.values())), ())
    warn_of_unnamed_texts(trained_on, reading, _files_of(sources))
    folder = resolved(folder)
    by_language = tuple((name, str(folder / name), of_name.sha256) for name, of_name in manifests.items() if name)
    digest = "" if by_language else manifests[""].sha256
    job = Job(str(folder), digest, installed_spacy(), reading, output._replace(rules=""), by_language, rules, groups)
    if not any(_rules_of(job)):  # rules may change the topics of any number of documents
        from textcat.tagging.held_out_tags import held_out_tag_counts  # imported here, because it needs numpy

        trained = trained._replace(given=held_out_tag_counts(job))
    share, limit = Share.parse(part) if part else None, RejectionLimit.parse(str(max_rejected))
    if share is not None and any(source.kind == "pipe" for source in sources):
        raise TextcatError("A pipe cannot be tagged in parts, as only one of them would read it: name files.")
    return TaggingPlan(job, sources, trained, jobs, scheduler, strict, part=share, max_rejected=limit)


def _files_of(sources: Sequence[Source]) -> Iterator[str]:
    """Yield the names of all files of the inputs, as far as they have been listed."""
    for source in sources:
        yield source.name
        yield from (state.name for state in source.states or ())


def _fields_of_rules(folder: Path, manifests: dict[str, Manifest], rules: str | None) -> tuple[str, ...]:
    """Return the fields of documents that house rules use; raise TextcatError if the rules are invalid for a model.

    `rules` is the text of the rules of all models; None: each model in the folder has its own.
    """
    fields: list[str] = []
    for language, manifest in manifests.items():
        about = manifest.topics, manifest.names, manifest.broader_topics
        if rules is None:
            of_model = rules_of_model(folder / language, *about)
        else:
            of_model = Rules.parse(rules, *about) if rules else None
        fields += of_model.read_fields if of_model else ()
    return tuple(fields)


def _manifests_by_language(folder: Path, lang: str, output: OutputSettings) -> dict[str, Manifest]:
    """Return the manifests of the models in a folder, by language; the key is "" if it is a single model."""
    models = [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}"))] if not (folder / MANIFEST).exists() else []
    languages = ", ".join(model.name for model in models)
    if lang not in ("", _AUTO):
        raise TextcatError(f"The language of documents cannot be {lang!r}: give 'auto', or the model of this language.")
    if not lang and models:
        raise TextcatError(
            f"{folder} holds several models ({languages:.60}): name one of them, or give --lang auto if they are named "
            "after their languages."
        )
    if lang and not models:
        raise TextcatError(
            f"{folder} has no models by language, as --lang auto needs them: give a folder of models that are named "
            "en, sv and so on, or leave out --lang."
        )
    if lang and output.topics:
        raise TextcatError("--topic chooses topics of one model: leave it out, or leave out --lang and name the model.")
    return {model.name: read_manifest(model) for model in models} if lang else {"": read_manifest(folder)}


def _check_calibrated(folder: Path, manifests: Iterable[Manifest]) -> None:
    for manifest in manifests:
        if f"{CALIBRATION}.npy" not in manifest.files:
            why, remedy = why_uncalibrated(manifest.recipe.tags.strategy)
            raise TextcatError(
                f"The model {folder} has no probabilities, as {why}: leave out --min-probability, or {remedy}."
            )


def _training_counts(manifests: Sequence[Manifest]) -> Trained:
    """Return the topics of one or several models, with their numbers of training documents summed.

    The name of a topic comes from the first model that has one for it. `Trained.given` is still empty.
    """
    sizes: Counter[str] = Counter()
    names: dict[str, str] = {}
    for manifest in manifests:
        sizes.update(manifest.sizes)
        names = manifest.names | names
    return Trained(dict(sizes), sum(manifest.train_documents for manifest in manifests), names, {})


def _rules_of(job: Job) -> list[str]:
    """Return the text of the house rules of each model of a job; "": it has none."""
    return [rules_beside(one.model) if job.rules is None else job.rules for one in job.jobs().values()]


def facts_of_job(job: Job, sources: Sequence[Source]) -> dict[str, Any]:
    """Return the model, versions and settings that the output depends on, keyed by names for error messages."""
    write = job.output
    of_reading = facts_of_reading(sources, job.input)
    rules = _rules_of(job)
    kept = [name for name in write.keep_fields if job.groups is None or name != FIELD]
    return {
        "model": job.model_ids,
        "textcat": __version__,
        "spacy": job.spacy,
        **library_versions(write),
        **of_reading,
        "--to": write.to,
        "--compress": write.compress,
        "--top": write.top,
        "--all-topics": write.all_topics,
        "--explain": write.explain,
        "--topic": ", ".join(sorted(write.topics)),
        **({"--keep-fields": kept} if kept else {}),
        **({"--per-document": True} if write.per_document else {}),
        **({"--no-csv-escape": True} if write.no_csv_escape else {}),
        RULES: sha256("\0".join(rules).encode()).hexdigest()[:16] if any(rules) else None,
        **({"--automatic": True} if write.automatic else {}),
        # The columns of rows depend on it, so it must stay the same when the model changes.
        **({"names": True} if write.names else {}),
        **({"--expected-recall": True} if write.expected_recall else {}),
        **({GROUPS: job.groups._asdict()} if job.groups is not None else {}),
        **({"--other-languages": write.other_languages} if job.by_language else {}),
        "--min-probability": None if write.min_probability is None else str(write.min_probability),
    }

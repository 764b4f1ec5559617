"""Options that several commands share, and readers that open a corpus."""

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError
from textcat.cli import terminal
from textcat.reading import SETTINGS, InputSettings

if TYPE_CHECKING:
    from textcat.base.progress import Stages
    from textcat.corpus.documents import Corpus
    from textcat.model.tagger import Tagger
    from textcat.reading import ForkedCorpus
    from textcat.recipes.recipe import Recipe

Command = TypeVar("Command", bound=Callable[..., Any])

# Names of the learners, listed without importing their libraries; a test compares them with the registry.
LEARNERS = ("alma", "cramma", "l-margitron", "micra", "pa", "pam", "paum", "pdm", "romma", "t-margitron")


def _complete_shipped(folder: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        from textcat.base.disk import shipped

        return sorted(path.stem for path in shipped(folder).glob("*.toml") if path.stem.startswith(incomplete))

    return complete


def number_of_jobs(jobs: int) -> int:
    """Return `jobs` as it is; raise BadParameter if it is neither positive nor -1 (one job per core)."""
    if jobs < 1 and jobs != -1:
        raise BadParameter(f"{jobs} jobs do nothing; give 1 or more, or -1 for one per core")
    return jobs


complete_corpus, complete_recipe = _complete_shipped("corpora"), _complete_shipped("recipes")


def import_learner(name: str | None) -> str | None:
    """Import the class of a learner, given as "MODULE:CLASS"; return the name. None is returned unchanged."""
    if name is not None:
        from textcat.recipes.recipe import learner_class

        learner_class(name)
    return name


CorpusName = Annotated[
    str,
    Argument(
        help="Name of a corpus, path of a card (.toml), or folder or archive of documents.",
        autocompletion=complete_corpus,
    ),
]
OwnCorpus = Annotated[
    str | None,
    Argument(help="The corpus; by default the one it was trained on.", autocompletion=complete_corpus),
]
ModelFolder = Annotated[Path, Argument(help="Folder of a trained model.")]
CorpusDir = Annotated[Path | None, Option(help="Folder in which corpora are looked for first.")]
Jobs = Annotated[
    int,
    Option("--jobs", "-j", callback=number_of_jobs, help="Blocks of topics trained in parallel; -1: one per core."),
]
RecipeName = Annotated[
    str, Option(help="Name of a shipped recipe, or path of a recipe file.", autocompletion=complete_recipe)
]
Learner = Annotated[
    str | None,
    Option(
        help="Train by another learner than the recipe's.",
        autocompletion=lambda incomplete: [name for name in LEARNERS if name.startswith(incomplete)],
    ),
]
ModelsLearner = Annotated[
    str | None,
    Option(
        metavar="MODULE:CLASS",
        callback=import_learner,
        help="The model's learner, if it is not textcat's: its module is imported only if it is named here.",
    ),
]
SessionsLearner = Annotated[
    str | None,
    Option(
        metavar="MODULE:CLASS",
        callback=import_learner,
        help="The learner that --export model trains by, if it is not textcat's: only then is its module imported.",
    ),
]
Bands = Annotated[
    list[str] | None,
    Option("--band", help="Set of topics to average over: ALL, TOPn, LASTn, 10-50, name=topic,topic. May be repeated."),
]
PageHost = Annotated[str, Option(help="Address that the page is served on.")]
PagePort = Annotated[int, Option(min=0, max=65535, help="Port of the page; 0: a free one.")]
PageKeys = Annotated[Path | None, Option(help="File of API keys, as for serve; the page then needs one.")]
NoBrowser = Annotated[bool, Option("--no-browser", help="Serve the page, but do not open it.")]
FailIf = Annotated[
    list[str] | None,
    Option(
        help="Condition by which the new model fails, such as 'MAP < -.005', 'macro F1 of TOP10 < -.01', "
        "'AP of wheat < -.05', or for a value 'MAP < .7'; exit code 4. May be repeated."
    ),
]
Strict = Annotated[
    bool,
    Option("--strict", help="Fail by a condition that may be true, not only by one that is true beyond chance."),
]
FORMS = ("text", "json", "csv", "markdown", "latex")


def _checked_form(form: str) -> str:
    if form not in FORMS:
        raise BadParameter(f"{form!r} is none of {', '.join(FORMS)}")
    return form


Form = Annotated[
    str,
    Option(
        "--as",
        metavar="FORM",
        callback=_checked_form,
        autocompletion=lambda incomplete: [form for form in FORMS if form.startswith(incomplete)],
        help="Form of what is printed: text, json, csv, markdown or latex.",
    ),
]
LabelledOnly = Annotated[
    bool, Option("--labelled-only", help="Leave out test documents that have none of the model's topics.")
]
PerTopic = Annotated[bool, Option("--topics", help="Print a row per topic, too.")]

_input = functools.partial(Option, rich_help_panel="Input")


def with_options(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Return a decorator that replaces some parameters of a command by groups of options.

    `groups` has a function for each parameter to replace. The parameters of this function become options of the
    command. When the command runs, the function is called with the values of these options, and its result is passed to
    the command as the parameter. Such a function may be decorated in the same way.
    """
    options = {name: inspect.signature(group).parameters for name, group in groups.items()}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> Any:
            for name, group in groups.items():
                values[name] = group(**{option: values.pop(option) for option in options[name]})
            return command(**values)

        parameters = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            for option in (options[name].values() if name in groups else [parameter])
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run  # type: ignore[return-value]

    return decorate


def _settings_of(group: str) -> Callable[..., dict[str, Any]]:
    """Return a function for `with_options`: its parameters are the options for a group of `SETTINGS` of reading.

    The function returns the values for `InputSettings`, by name.
    """

    def values(**option_values: Any) -> dict[str, Any]:
        return _setting_values(option_values)

    options = []
    for name, (setting, kind) in SETTINGS.items():
        if setting.group == group:
            plain: Any = list[str] | None if setting.repeated else bool if kind is bool else str
            default = None if setting.repeated else InputSettings._field_defaults[name] or plain()
            option = _input(
                setting.option, help=setting.help, metavar=setting.metavar, show_default=setting.default or True
            )
            annotated: Any = Annotated[plain, option]
            options.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotated)
            )
    values.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return values


def _setting_values(option_values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of options to values of the fields of `InputSettings`, by name.

    Lists separated by commas are split, and the values of an option that can be repeated become a tuple.
    """
    values: dict[str, Any] = {}
    for name, value in option_values.items():
        setting, kind = SETTINGS[name]
        if name == "topics_field" and value:
            values |= {"topics_field": value[0]} if len(value) == 1 else {"topic_fields": tuple(value)}
        elif setting.repeated:
            values |= {name: tuple(map(_for_files, value) if name == "for_files" else value)} if value else {}
        else:
            values[name] = value if kind in (str, bool) else tuple(filter(None, map(str.strip, value.split(","))))
    return values


def _for_files(text: str) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Parse a value of --for into a file pattern and its settings, such as "*.csv --text-field abstract"."""
    example = "--for '*.csv --text-field abstract'"
    try:
        pattern, *words = shlex.split(text)
    except ValueError:
        raise BadParameter(f"--for takes a pattern and options, not {text!r}: write {example}") from None
    names = {setting.option: name for name, (setting, _) in SETTINGS.items() if setting.group and name != "for_files"}
    option_values: dict[str, Any] = {}
    rest = iter([part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])])
    for option in rest:
        name = names.get(option, "")
        value = name and (SETTINGS[name][1] is bool or next(rest, None))
        if not name or value is None:
            choices = ", ".join(names)
            raise BadParameter(f"--for {text!r}: {option!r} is none of its options, or has no value; write {choices}")
        option_values[name] = [*option_values.get(name, ()), value] if SETTINGS[name][0].repeated else value
    if not option_values:
        raise BadParameter(f"--for {text!r} has no options: write {example}")
    return pattern, tuple(_setting_values(option_values).items())


@with_options(values=_settings_of("reading"))
def input_settings(values: dict[str, Any]) -> InputSettings:
    """Return the settings by which inputs are read, given the values of options of the command line."""
    return InputSettings(**values)


@with_options(settings=input_settings, labels=_settings_of("labels"))
def corpus_reader(
    settings: InputSettings,
    labels: dict[str, Any],
    test_size: Annotated[
        float | None,
        _input(
            min=0, help="Fraction or number of documents to set aside as test part.", show_default="the corpus' own"
        ),
    ] = None,
    test_seed: Annotated[int, _input(min=0, help="Seed by which these documents are drawn.")] = 0,
    keep_groups: Annotated[
        bool, _input("--keep-groups", help="Draw documents that repeat each other together, so that none has a twin.")
    ] = False,
    corpus_dir: CorpusDir = None,
) -> "CorpusReader":
    """Return a reader that opens a corpus by the given options."""
    settings = settings._replace(**labels)
    asked = None if settings == InputSettings() and "topics_field" not in labels else settings
    if test_seed and test_size is None:
        raise BadParameter(f"--test-seed {test_seed} draws the documents of --test-size: give both")
    if keep_groups and test_size is None:
        raise BadParameter("--keep-groups draws the documents of --test-size: give both")
    return CorpusReader(corpus_dir, asked, test_size, test_seed, keep_groups)


@with_options(read=corpus_reader)
def corpus_to_train_on(
    read: "CorpusReader",
    vocabulary: Annotated[
        Path | None, _input(help="File with the topics' names: TSV, CSV or SKOS.", show_default="that of the card")
    ] = None,
    vocabulary_language: Annotated[
        str, _input(help="Language of these names.", show_default="the recipe's, else en")
    ] = "",
) -> "CorpusReader":
    """Return a reader that opens a corpus by the given options, and gives its topics names from a vocabulary."""
    if vocabulary_language and not vocabulary:
        raise BadParameter("--vocabulary-language is that of the names in --vocabulary: give both")
    return read._replace(vocabulary=vocabulary, vocabulary_language=vocabulary_language)


class CorpusReader(NamedTuple):
    """Open a corpus by the options of a command."""

    corpus_dir: Path | None
    settings: InputSettings | None
    test_size: float | None
    seed: int
    keep_groups: bool = False
    vocabulary: Path | None = None
    vocabulary_language: str = ""

    def in_language_of(self, recipe: "Recipe") -> "CorpusReader":
        """Return a reader that names topics in the recipe's language, unless the options name a language.

        Without a vocabulary, or with one in TSV, which has a single language, the reader itself is returned.
        """
        if self.vocabulary_language or self.vocabulary is None or ".tsv" in self.vocabulary.suffixes:
            return self  # a .tsv has names in one language, which it does not state
        return self._replace(vocabulary_language=recipe.tokens.lang)

    def __call__(self, corpus: str | None, stages: "Stages", origin: "Mapping[str, Any] | None" = None) -> "Corpus":
        """Open a corpus by its name or path; without one, open the corpus that `origin` (a `Corpus.origin`) describes.

        If the named corpus is the one in `origin`, it has the same test part. `stages` measures the time of reading,
        and shows its progress.
        """
        from textcat.corpus.catalogue import open_corpus, reopen_corpus

        with stages.stage("read", shows="bytes") as bar:
            if corpus is not None:
                return open_corpus(corpus, progress=bar, origin=origin, **self._asdict())
            if self.settings or self.test_size is not None:
                why = "the model's own is read as for its training"
                raise BadParameter(f"options of input go with a corpus that is named: {why}")
            return reopen_corpus(origin or {}, corpus_dir=self.corpus_dir, progress=bar)

    def stream(self, corpus: str) -> "ForkedCorpus | None":
        """Begin to read a corpus in another process, and return the corpus that will receive the documents.

        Return None if the corpus is not a file on disk, if the file is too large, or if another process is unsafe or no
        faster.
        """
        from textcat.corpus.catalogue import stream_corpus

        return stream_corpus(corpus, **self._asdict())


def test_corpus(
    read: CorpusReader, corpus: str | None, tagger: "Tagger", stages: "Stages", *, labelled_only: bool
) -> "Corpus":
    """Open the corpus to measure a tagger on, by default its training corpus, and return it with a test part.

    With `labelled_only`, the test part has only documents that have a topic of the tagger, if there are such documents.
    """
    from textcat.corpus.cards import is_shipped
    from textcat.model.evaluate import measured_part, with_test_documents
    from textcat.reading import InputSettings, named_in_training, warn_of_unnamed_texts

    own = tagger.facts.origin if corpus else _origin(tagger)
    documents = with_test_documents(tagger, read(corpus or None, stages, own))
    if corpus and not is_shipped(corpus) and not named_in_training(documents.origin):
        warn_of_unnamed_texts(named_in_training(own), read.settings or InputSettings(), [corpus])
    if corpus and not is_shipped(corpus) and (said := measured_part(tagger, documents, corpus)):
        terminal.say(said)
    if not labelled_only:
        return documents
    labelled = [document for document in documents.test if not set(tagger.topics).isdisjoint(document.topics)]
    return replace(documents, test=labelled or documents.test)  # evaluation raises an error if none has


def _origin(tagger: "Tagger") -> Mapping[str, Any]:
    """Return the arguments that open a tagger's training corpus again; raise TextcatError if they are not known."""
    where = tagger.facts.origin.get("name_or_path", "")
    if not where or (Path(where).is_absolute() and "*" not in where and not Path(where).exists()):
        raise TextcatError(
            f"The model was trained on {tagger.facts.corpus!r}, which is no known corpus: name the corpus to evaluate "
            "on." + (f" There is no file or folder {where}." if where else "")
        )
    return tagger.facts.origin


def scheduler_address(
    backend: Annotated[
        str, Option(help="Where the work is done: on this machine (local) or on a Dask cluster (dask).")
    ] = "local",
    scheduler: Annotated[str, Option(help="Address of the Dask cluster's scheduler, such as tcp://host:8786.")] = "",
) -> str:
    """Return the address of the Dask cluster's scheduler; "" if this machine does the work."""
    if backend not in ("local", "dask"):
        raise BadParameter(f"--backend is 'local' or 'dask', not {backend!r}")
    if (backend == "dask") != bool(scheduler):
        raise BadParameter("--backend dask and --scheduler ADDRESS go together")
    return scheduler


def model_names(before: Path, now: Path) -> tuple[str, str]:
    """Return the names of two models: those of their folders, or their paths if the folders have the same name."""
    return (before.name, now.name) if before.name != now.name else (str(before), str(now))

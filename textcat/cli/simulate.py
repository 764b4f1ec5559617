"""The command `simulate`: active learning on labelled documents, to see how many answers teaching would take."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from textcat.base.errors import TextcatError
from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages
    from textcat.teaching.simulate import Result, Setting

_MOST_LINES = 20  # number of topics in a table, unless all are asked for


@common.with_options(read=common.corpus_reader)
def simulate(
    corpora: Annotated[
        list[str],
        Argument(help="Labelled corpora, by name, card, file or folder.", autocompletion=common.complete_corpus),
    ],
    read: common.CorpusReader,
    topic: Annotated[list[str] | None, Option(help="Teach this topic only. May be repeated.")] = None,
    strategy: Annotated[
        list[str] | None,
        Option(
            help="highest, uncertain or mixture; highest:0.05 asks 5 % at random. May be repeated.",
            show_default="highest",
        ),
    ] = None,
    start: Annotated[str, Option(help="What teaching starts with: example, description or random.")] = "example",
    description: Annotated[
        str, Option(help="The topic in words, for --start description.", show_default="the corpus' own, or its names")
    ] = "",
    seeds: Annotated[int, Option(min=1, help="Runs of each topic and strategy.")] = 20,
    recipe: Annotated[
        str, Option(help="Recipe by which documents become rows.", autocompletion=common.complete_recipe)
    ] = "active-learning",
    settings: Annotated[
        list[str] | None,
        Option("--set", help="Change a setting of the recipe or of the ranker, as in ranker.C=0.2. May be repeated."),
    ] = None,
    steps: Annotated[
        str, Option(help="Questions between trainings: 1 up to 100 answers, 5 up to 500, then 10.")
    ] = "1:100,5:500,10",
    rule: Annotated[
        list[str] | None,
        Option(help="Stopping rule to try: learned, sample or none. May be repeated.", show_default="learned"),
    ] = None,
    target: Annotated[float, Option(help="Recall at which the stopping rules stop.")] = 0.95,
    confidence: Annotated[float, Option(help="Confidence of the stopping rules in this recall.")] = 0.95,
    supervised: Annotated[
        bool, Option(help="Count the answers until the ranker is nearly as good as one trained on all labels.")
    ] = True,
    topics: common.PerTopic = False,
    jobs: Annotated[
        int, Option("--jobs", "-j", callback=common.number_of_jobs, help="Runs at the same time; -1: one per core.")
    ] = -1,
    form: common.Form = "text",
    out: Annotated[
        Path | None, Option(help="Folder for runs, tables and a plot; runs saved there are not repeated.")
    ] = None,
) -> None:
    """Simulate `teach` on labelled documents, whose labels are the answers, to see how many answers a topic needs.

    The tables have means over seeds, with 95 % intervals, of three measures: how far the order of questions is from the
    best one (loss), the work saved, and the number of answers.
    """
    from textcat.recipes.recipe import read_recipe
    from textcat.teaching.simulate import Setting, experiment, simulated_topics
    from textcat.teaching.stopping import DEFAULT_RULE, RULES

    stages = terminal.new_stages()
    chosen_recipe = read_recipe(recipe).with_settings(settings or [])
    ranker = chosen_recipe.ranker
    opened = [read(name, stages) for name in corpora]
    with stages.stage("rows", len(opened)) as bar:
        simulated = []
        for corpus in opened:
            simulated += simulated_topics(corpus, chosen_recipe, topic, description, embeddings=bool(ranker.embeddings))
            bar(1)
    rules = [DEFAULT_RULE] if rule is None else [name for name in rule if name != "none"]
    for name in set(rules) - set(RULES):
        raise BadParameter(f"--rule takes one of {', '.join(RULES)}, or none, not {name!r}")
    if not simulated:
        raise TextcatError(
            "No topic has both relevant and other documents, so there is nothing to simulate: give labelled documents."
        )
    setting = Setting("", ranker, "", start, steps, tuple(dict.fromkeys(rules)), target, confidence, supervised)
    compared = [setting._replace(name=name, strategy=name) for name in dict.fromkeys(strategy or ["highest"])]
    with stages.stage("simulate", len(simulated) * len(compared) * seeds) as bar:
        kept = None if out is None else out / "runs.jsonl"
        results = experiment(simulated, compared, range(seeds), n_jobs=jobs, kept=kept, advance=bar)
    _report(terminal.console(), results, stages, compared, form, per_topic=topics, out=out)


# --- what is printed and written --------------------------------------------------------------------------------------


def _report(
    console: "Console",
    results: "Sequence[Result]",
    stages: "Stages",
    compared: "Sequence[Setting]",
    form: str,
    *,
    per_topic: bool,
    out: Path | None,
) -> None:
    """Print the results of the runs; if `out` is not None, write a summary, tables and a plot to this folder, too."""
    from textcat.base.disk import write_atomically
    from textcat.cli.printing import Note, Table, cost_of_stages, show
    from textcat.evaluation.export import markdown_table

    shown = _all_tables(results, compared, per_topic=per_topic)
    summary = _summary(results, compared)
    if out is not None:
        write_atomically(out / "summary.json", json.dumps(summary, indent=1) + "\n")
        write_atomically(
            out / "tables.md", "\n".join(map(markdown_table, _all_tables(results, compared, per_topic=True)))
        )
        _draw(out / "curves.svg", results)
    n_topics, n_seeds = len({(r.corpus, r.topic) for r in results}), len({r.seed for r in results})
    seconds = sum(result.seconds for result in results)
    said = (
        f"{len(results)} runs: {n_topics} topic{'s' * (n_topics > 1)}, {n_seeds} seed{'s' * (n_seeds > 1)}; "
        f"{seconds:.0f} s of processor time, {stages.seconds['simulate']:.0f} s. ± is half a 95 % interval over seeds."
    )
    show(
        console,
        form,
        summary | cost_of_stages(stages),
        *(Table(table, needed=6 + (len(compared) > 1)) for table in shown),
        Note(said),
        "" if out is None else f"Runs, tables and recall curves: {out}",
    )


def _all_tables(
    results: "Sequence[Result]", compared: "Sequence[Setting]", *, per_topic: bool
) -> list[list[dict[str, Any]]]:
    """Return the tables of results, each a list of rows.

    They show the quality of the order of questions, the answers needed, and, if there are any, the stopping rules. If
    `per_topic` is set, every topic has a row, even if there are many.
    """
    from textcat.teaching.simulate import by_topic

    grouped = by_topic(results)
    several, shown = len(compared) > 1, grouped if per_topic or len(grouped) <= _MOST_LINES else {}
    qualities, answers = [], []
    for (strategy, *_), group in shown.items():
        of_it, n = group[0], group[0].n_documents
        name: dict[str, Any] = {"topic": _name_of(of_it, results)} | ({"strategy": strategy} if several else {})
        sizes = {"N": n, "R": len(of_it.found)}
        qualities.append(name | sizes | _quality(group))
        answers.append(name | sizes | _answers(group))
    for strategy in dict.fromkeys(result.way for result in results):
        group = [result for result in results if result.way == strategy]
        if not several or len({(r.corpus, r.topic) for r in group}) > 1 or not shown:
            name = {"topic": "mean"} | ({"strategy": strategy} if several else {}) | {"N": None, "R": None}
            qualities.append(name | _quality(group))
            answers.append(name | _answers(group))
    tables = [qualities, answers]
    stops = _stop_rows(results, compared, several=several)
    return [*tables, stops] if stops else tables


def _name_of(result: "Result", results: "Sequence[Result]") -> str:
    """Return the shortest name that distinguishes a result from the other results: its topic, its corpus, or both."""
    corpora, topics = {r.corpus for r in results}, {r.topic for r in results}
    if len(corpora) == 1:
        return result.topic
    return result.corpus if len(topics) == 1 else f"{result.corpus}: {result.topic}"


def _quality(group: "Sequence[Result]") -> dict[str, Any]:
    return {
        "loss": _mean_text(group, "loss", decimals=4),
        "WSS@95": _mean_text(group, "wss95", 100),
        "RRF@10": _mean_text(group, "rrf10", 100),
        "@R": _mean_text(group, "recall@R", 100, bare=True),
        "@2R": _mean_text(group, "recall@2R", 100, bare=True),
    }


def _answers(group: "Sequence[Result]") -> dict[str, Any]:
    row = {f"to {level} %": _mean_text(group, f"answers{level}", decimals=0) for level in (80, 90, 95)}
    return row | ({"as if all": _mean_text(group, "supervised", decimals=0)} if group[0].supervised is not None else {})


def _mean_text(
    group: "Sequence[Result]", measure: str, scale: float = 1, decimals: int = 1, *, bare: bool = False
) -> str:
    from textcat.cli.printing import Figure, format_figure
    from textcat.teaching.simulate import means_by_setting

    (mean,) = means_by_setting(group, measure).values()
    if mean.mean != mean.mean:
        return Figure("-")
    half = "" if bare or mean.low != mean.low else f" ±{format_figure(scale * (mean.mean - mean.low), decimals)}"
    return Figure(f"{format_figure(scale * mean.mean, decimals)}{half}")


def _stop_rows(results: "Sequence[Result]", compared: "Sequence[Setting]", *, several: bool) -> list[dict[str, Any]]:
    """Return a row per setting and stopping rule: how often the target recall was reached, and the answers it took.

    If `several` is set, each row names its setting.
    """
    import numpy as np

    from textcat.cli.printing import Figure
    from textcat.evaluation.promises import clopper_pearson
    from textcat.teaching.measures import answers_to_reach

    rows = []
    for setting, rule in [(way, rule) for way in compared for rule in way.rules]:
        group = [result for result in results if result.way == setting.name]
        recalls = np.array([result.recall_at_stop(rule) for result in group])
        needed = np.array([answers_to_reach(result.found, setting.target) for result in group])
        asked = np.array([result.stops[rule] for result in group])
        covered = int((recalls >= setting.target).sum())
        low, high = clopper_pearson(covered, len(group)).tolist()
        name = {"rule": rule} | ({"strategy": setting.name} if several else {})
        rows.append(
            name
            | {
                "coverage": Figure(f"{100 * covered / len(group):.1f} %"),
                "interval": Figure(f"{100 * low:.1f} to {100 * high:.1f}"),
                "recall": Figure(f"{100 * recalls.mean():.1f} %"),
                "answers": Figure(f"{asked.mean():.0f}"),
                "× needed": Figure(f"{np.median(asked / needed):.2f}"),
            }
        )
    return rows


def _summary(results: "Sequence[Result]", compared: "Sequence[Setting]") -> dict[str, Any]:
    """Return all measures, for JSON: means by setting, means by topic, results of stopping rules, and each run."""
    from textcat.teaching.simulate import by_topic, means_by_setting

    runs = [
        {"corpus": r.corpus, "topic": r.topic, "strategy": r.way, "seed": r.seed, "documents": r.n_documents}
        | {"relevant": len(r.found), **r.figures}
        | {"stops": {rule: {"answers": n, "recall": r.recall_at_stop(rule)} for rule, n in r.stops.items()}}
        for r in results
    ]

    def all_means(group: "Sequence[Result]") -> dict[str, Any]:
        return {
            measure: next(iter(means_by_setting(group, measure).values()))._asdict() for measure in group[0].figures
        }

    topics = [
        {"strategy": strategy, "corpus": corpus, "topic": topic, **all_means(group)}
        for (strategy, corpus, topic), group in by_topic(results).items()
    ]
    overall = [
        {"strategy": setting.name, **all_means([r for r in results if r.way == setting.name])} for setting in compared
    ]
    stops = _stop_rows(results, compared, several=True)
    return {"means": overall, "topics": topics, "rules": stops, "runs": runs}


def _draw(path: Path, results: "Sequence[Result]") -> None:
    """Plot recall against the share of documents judged: a line per strategy, and a thin line per topic."""
    import numpy as np

    from textcat.papers.experiments import draw_axes
    from textcat.teaching.measures import recall_curve
    from textcat.teaching.simulate import by_topic

    shares = np.linspace(0, 1, 501)
    curves: dict[str, list[Any]] = {}
    for (strategy, *_), group in by_topic(results).items():
        n = group[0].n_documents
        curves.setdefault(strategy, []).append(recall_curve([result.found for result in group], n, shares * n))
    with draw_axes(path) as axes:
        axes.plot([0, 100], [0, 100], ":", color="silver", label="in random order")
        for number, (strategy, of_topics) in enumerate(curves.items()):
            if 1 < len(of_topics) <= _MOST_LINES:
                axes.plot(100 * shares, 100 * np.transpose(of_topics), color=f"C{number}", linewidth=0.4, alpha=0.6)
            axes.plot(100 * shares, 100 * np.mean(of_topics, axis=0), color=f"C{number}", label=strategy)
        axes.set(xlabel="documents judged [%]", ylabel="recall [%]", xlim=(0, 100), ylim=(0, 101))
        axes.legend(loc="lower right")

"""The commands `tune` (compare recipes) and `recipes` (print them)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.base.progress import Stages
    from textcat.recipes.recipe import Recipe
    from textcat.training.cross_validation import Trial

_MOST_TRIALS = 30  # number of trials that are printed; a file has all trials


@common.with_options(read=common.corpus_to_train_on)
def tune(
    corpus: common.CorpusName,
    read: common.CorpusReader,
    recipe: common.RecipeName = "default",
    space: Annotated[
        Path | None, Option(help="File of the values to try; by default the margins of docs/background/tau-study.md.")
    ] = None,
    sampler: Annotated[
        str, Option(help="Recipes to try: all of the space (grid), random ones, or those that optuna suggests (tpe).")
    ] = "grid",
    trials: Annotated[
        int | None, Option(min=1, help="How many recipes to try, for random and tpe.", show_default="100")
    ] = None,
    folds: Annotated[
        int | None, Option(min=2, help="Parts the training documents are split into.", show_default="5")
    ] = None,
    repeats: Annotated[
        int | None, Option(min=1, help="How many splits into folds to average over.", show_default="1")
    ] = None,
    seed: Annotated[
        int, Option(min=0, help="Seed of the first split (of the sample, with a shortlist) and of the sampler.")
    ] = 0,
    jobs: common.Jobs = -1,
    form: common.Form = "text",
    out: Annotated[
        Path | None, Option(help="Folder for the table, the best recipe, and the trials; the same study resumes there.")
    ] = None,
) -> None:
    """Compare recipes on training documents that are held out, and find the best."""
    from textcat.recipes.recipe import read_recipe
    from textcat.training.tune import best_trial, run_trials

    if trials and sampler == "grid":
        raise BadParameter("--trials goes with --sampler random or tpe: the grid has all recipes of its space")
    start, stages = read_recipe(recipe), terminal.new_stages()
    documents = read.in_language_of(start)(corpus, stages)
    results = run_trials(
        documents,
        start,
        space,
        sampler,
        trials or 100,
        out,
        stages,
        n_folds=folds,
        n_repeats=repeats,
        seed=seed,
        n_jobs=jobs,
    )
    show_trials(terminal.console(), results, best_trial(results), stages, out, form)


def recipes(
    name: Annotated[
        str | None,
        Argument(help="A recipe to print: its name or file; none: list them.", autocompletion=common.complete_recipe),
    ] = None,
    form: common.Form = "text",
) -> None:
    """List the recipes, or print one as a file, with the meaning, type and default of every setting."""
    from textcat.recipes.recipe import read_recipe
    from textcat.recipes.recipe import recipes as shipped_recipes

    if name is None:
        show_recipes(terminal.console(), list(map(read_recipe, shipped_recipes())), form)
    else:
        recipe = read_recipe(name)
        recipe.check()
        show_recipe(terminal.console(), recipe, form)


def show_recipes(console: "Console", shipped: "Sequence[Recipe]", form: str) -> None:
    """Print the names, learners and titles of recipes."""
    from textcat.cli.printing import Table, show

    rows = [{"recipe": recipe.name, "learner": recipe.learner["name"], "title": recipe.title} for recipe in shipped]
    show(console, form, rows, Table(rows))


def show_recipe(console: "Console", recipe: "Recipe", form: str) -> None:
    """Print a recipe, with every setting and its meaning: as a TOML file that can be read again, or as a table."""
    from textcat.cli.printing import Table, show

    fields = [field._asdict() for field in recipe.fields()]
    data = {"recipe": recipe.name, "title": recipe.title, "fields": fields}
    show(console, form, data, _as_toml(console, recipe) if form == "text" else Table(fields))


def _as_toml(console: "Console", recipe: "Recipe") -> str:
    from textcat.base.settings import format_value
    from textcat.cli.printing import wrapped_text

    lines, section = [f"title = {format_value(recipe.title)}"], ""
    for field in recipe.fields():
        if field.section != section:
            section = field.section
            lines += ["", f"[{section}]"]
        default = "none" if field.default is None else format_value(field.default)
        lines += ["", wrapped_text(console, f"{field.explanation} ({field.type}; default: {default})", "# ")]
        lines.append(f"# {field.name} =" if field.value is None else f"{field.name} = {format_value(field.value)}")
    return "\n".join(lines)


def show_trials(
    console: "Console",
    trials: "Sequence[Trial]",
    chosen: "Trial",
    stages: "Stages",
    out: Path | None,
    form: str,
) -> None:
    """Print the compared recipes, the best first, and the chosen one.

    If `out` is not None, write the table and the chosen recipe to this folder, too.
    """
    from textcat.base.disk import write_atomically
    from textcat.cli.printing import Table, cost_of_stages, settings_text, show, stage_table
    from textcat.evaluation.evaluation import TITLES
    from textcat.evaluation.export import markdown_table
    from textcat.training.cross_validation import EXPECTED, MAP
    from textcat.training.tune import is_yardstick, to_toml

    varied = _varied_parameters([trial.recipe for trial in trials])
    figures = [(measure, band) for measure, values in trials[0].measures.items() for band in values]
    if out is not None:
        write_atomically(out / "table.md", markdown_table([_trial_row(trial, varied, figures) for trial in trials]))
        write_atomically(out / "recipe.toml", to_toml(chosen.recipe))
    figures.sort(key=lambda figure: figure[1] not in ("ALL", EXPECTED))  # sort by these bands first; the sort is stable
    measure, band = chosen.judged_by
    goal = f"the best over {band}" if measure == MAP else f"the best by {TITLES[measure].column}"
    if any(map(is_yardstick, trials)):
        goal = "PAUM(1, 50) over ALL, TOP10 and RARE"
    taken = {key: chosen.recipe.settings(section).get(key) for section, key in varied}
    cost = cost_of_stages(stages)
    show(
        console,
        form,
        {"chosen": chosen.as_dict(), "trials": [trial.as_dict() for trial in trials], **cost},
        Table([_trial_row(trial, varied, figures) for trial in trials], len(varied) + 3, _MOST_TRIALS),
        stage_table(**cost),
        f"Measured on {chosen.measured_on}." if chosen.measured_on else "",
        f"The sparsest that ranks as well as {goal}: {settings_text(taken)}",
        "" if out is None else f"Table, recipe and trials: {out}",
    )


def _trial_row(trial: "Trial", varied: list[tuple[str, str]], figures: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the row of a trial in the table: its values of the parameters that vary, and of the measures to show.

    `varied` has each parameter as (section, name), and `figures` each measure as (measure, band), where a band is a set
    of topics to average over.
    """
    from textcat.cli import printing
    from textcat.evaluation.evaluation import TITLES

    row = {key: trial.recipe.settings(section).get(key) for section, key in varied}
    for measure, band in figures:
        title, value = TITLES[measure], trial.measures[measure][band]
        row[f"{title.column} {band}"] = printing.Figure(f"{value:.{4 if title.decimals else 0}f}")
    return row


def _varied_parameters(recipes: "Sequence[Recipe]") -> list[tuple[str, str]]:
    """Return the parameters in which recipes differ, each as (section of the recipe file, name)."""
    sections = ("tokens", "features", "topics", "learner")
    named = dict.fromkeys((section, key) for section in sections for r in recipes for key in r.settings(section))
    return [
        (section, key)
        for section, key in named
        if len({json.dumps(recipe.settings(section).get(key)) for recipe in recipes}) > 1
    ]

"""The commands `topics` (print a model's topics) and `show` (print how it was trained, or the terms of a topic)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from textcat.cli import common, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.model.manifest import Manifest
    from textcat.model.tagger import Tagger

# Additional columns for topics of models with promises, and the fields of a promise that they show.
_PROMISED = {"promised precision": "precision", "automatic above": "threshold", "promised recall": "recall"}


def topics(model: common.ModelFolder, form: common.Form = "text") -> None:
    """List a model's topics: how many training documents each has, its threshold, and how its training went."""
    from textcat.model import storage
    from textcat.model.manifest import read_manifest

    tagger = storage.load(model, prepare=False, with_rules=False)
    show_topics(terminal.console(), read_manifest(model), tagger, form)


def show(
    model: common.ModelFolder,
    topic: Annotated[
        str | None, Option(help="Show the terms with the largest weights for this topic (id or name).")
    ] = None,
    n: Annotated[int, Option("--terms", min=1, help="How many terms.")] = 20,
    form: common.Form = "text",
) -> None:
    """Show how a model was trained, or the terms with the largest weights for a topic."""
    from textcat.model import storage
    from textcat.model.manifest import read_manifest
    from textcat.model.topic_names import find_topic, topic_label

    tagger, console = storage.load(model, prepare=False, with_rules=False), terminal.console()
    if topic is None:
        show_model(console, read_manifest(model), model, tagger.decisions.thresholds.tolist(), form)
    else:
        terms = tagger.terms(topic, n)
        label = ""
        if names := tagger.topic_names:
            label = topic_label(find_topic(tagger.topics, names, topic), names)
        show_terms(console, terms, form, label)


def show_topics(console: "Console", manifest: "Manifest", tagger: "Tagger", form: str) -> None:
    """Print a model's topics, the largest first, with their thresholds and promises."""
    from textcat.cli.evaluate import printed_facts, short_fact
    from textcat.cli.printing import Table, largest_first, named_rows, show

    sizes, facts, named = manifest.train_sizes, manifest.facts, manifest.names
    prevalence = [size / manifest.train_documents for size in sizes]
    promises, thresholds = tagger.promises.values(), tagger.decisions.thresholds.tolist()
    promised = {
        name: [getattr(promise, field) for promise in promises] for name, field in _PROMISED.items() if promises
    }
    columns = zip(manifest.topics, sizes, prevalence, thresholds, *promised.values(), *facts.values(), strict=True)
    titles = ("topic", "train", "prevalence", "threshold", *promised, *facts)
    rows = largest_first(named_rows(titles, columns))
    if named:
        rows = [{"topic": row["topic"], "name": named.get(row["topic"]), **row} for row in rows]
    texts = ("topic", "name") if named else ("topic",)
    printed = printed_facts([fact for fact in rows[0] if fact not in texts])
    shown = [{text: row[text] for text in texts} | {fact: short_fact(row[fact]) for fact in printed} for row in rows]
    show(console, form, rows, Table(shown, needed=2 + len(texts)), rows=lambda: rows)


def show_model(console: "Console", manifest: "Manifest", folder: Path, thresholds: Sequence[float], form: str) -> None:
    """Print how a model was trained, and the range of its topics' thresholds."""
    from textcat.cli.evaluate import band_rows
    from textcat.cli.printing import Facts, Table, settings_text, show
    from textcat.model.history import n_learnt

    measured = manifest.evaluation
    recipe, named, language = manifest.recipe, manifest.names, manifest.names_language or ""
    size = sum(path.stat().st_size for path in folder.iterdir())
    counts = {"topics": len(manifest.topics), "terms": manifest.features.n_terms}
    stored = {name: getattr(manifest, name) for name in ("format", "corpus", "train_documents")}
    stored |= {"recipe": recipe.as_dict(), "versions": manifest.versions, "evaluation": measured and measured.as_dict()}
    stored |= {"train_dates": manifest.train_dates} if manifest.train_dates else {}
    stored["thresholds"] = dict(zip(manifest.topics, thresholds, strict=True))
    written, learnt = _when_written(folder), n_learnt(folder)
    stored |= {"written": written, "learnt": learnt}
    stored_names = {"named_topics": len(named), "names_language": language} if named else {}
    of_names = f", of which {len(named)} have a name{f' ({language})' if language else ''}" if named else ""
    facts = {
        "model": f"{folder} ({size / 1e6:.1f} MB, format {manifest.format}), id {manifest.id}",
        "written": written,
        "corpus": f"{manifest.corpus}, {manifest.train_documents} training documents",
        "learnt": f"{learnt} step{'s' * (learnt > 1)} since training: see `textcat learn --history`"
        if learnt
        else None,
        "dates": " to ".join(manifest.train_dates) or None,
        "topics": f"{counts['topics']}{of_names}",
        "terms": counts["terms"],
        "recipe": recipe.title,
        **{section: settings_text(recipe.settings(section)) for section in ("tokens", "features", "learner")},
        "thresholds": _thresholds(recipe.tags.strategy, thresholds),
        "made with": settings_text(manifest.versions, " "),
    }
    parts: list[Any] = [Facts(facts)]
    if measured and measured.bands:
        parts.append(f"Measured after training, on {measured.test_documents} {measured.measured_on}:")
        parts.append(Table(band_rows(measured)))
    show(
        console,
        form,
        {"model": str(folder), "id": manifest.id, **stored, **counts, **stored_names, "bytes": size},
        *parts,
    )


def _thresholds(strategy: str, thresholds: Sequence[float]) -> str:
    if strategy == "single":
        return "none: each document gets its most probable topic"
    return f"{min(thresholds):.4g} to {max(thresholds):.4g} (strategy {strategy}); `textcat topics` lists each"


def _when_written(folder: Path) -> str:
    """Return when the model in a folder was written, as UTC in ISO 8601: after training, or when it was copied."""
    from datetime import datetime, timezone

    from textcat.model import manifest_status

    status = manifest_status(folder)
    return datetime.fromtimestamp(status.st_mtime, timezone.utc).isoformat(timespec="seconds") if status else ""


def show_terms(console: "Console", terms: Iterable[tuple[str, float]], form: str, title: str = "") -> None:
    """Print the terms of a topic with their weights, below a title."""
    from textcat.cli.printing import Table, show

    rows = [{"term": term, "weight": weight} for term, weight in terms]
    show(console, form, rows, title, Table(rows))

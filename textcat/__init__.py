"""Text categorisation with margin perceptrons: documents in, ranked topics out."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names and the modules that define them. Each is imported at its first use, so that `import textcat` is fast.
# Type checkers and editors read the names in __init__.pyi, which `python tests/test_front_door.py --write` generates.
_NAMES_IN = {
    "base.calibration": "Calibration",
    "base.cluster": "on_cluster",
    "base.errors": "TextcatError",
    "corpus.catalogue": "open_corpus",
    "corpus.documents": "Corpus",
    "corpus.vocabulary": "Vocabulary",
    "evaluation.evaluation": "Evaluation MeasuredOn evaluate_scores",
    "evaluation.at_k": "evaluate_at_k",
    "evaluation.precision_thresholds": "PrecisionThresholds",
    "evaluation.promises": "Promise Status",
    "evaluation.significance": "compare_evaluations",
    "evaluation.splitters": "MultilabelStratifiedGroupKFold MultilabelStratifiedKFold",
    "features.store": "open_rows write_rows",
    "features.tfidf": "TfIdf",
    "features.tokens": "Tokens",
    "margin": "rules",
    "margin.learners": "Alma Cramma DynamicMargin LMargitron MarginClassifier Micra PA PAM PAUM Romma TMargitron",
    "margin.problems": "Problem Solution",
    "margin.solve": "solve",
    "model.compare": "compare",
    "model.decisions": "Decisions",
    "model.evaluate": "evaluate",
    "model.explain": "Explanation",
    "model.facts": "TrainingFacts",
    "model.explain_corpus": "Explained explain",
    "model.history": "LearningStep learning_history",
    "model.promotion": "GateError Promotion promote rollback",
    "model.selection": "Tag Tags",
    "model.storage": "load save",
    "model.tagger": "Tagger",
    "reading.document": "Document",
    "reading.input_settings": "InputSettings",
    "recipes.recipe": "Recipe read_recipe",
    "sharing.copies": "pull push",
    "tagging.duplicates": "Duplicates find_duplicates",
    "tagging.merge": "merge_parts",
    "tagging.monitor": "monitor_tags",
    "tagging.output": "OutputSettings",
    "tagging.run": "tag_archive",
    "tagging.trends": "TrendRow Trends estimate_trends",
    "teaching.pool.pool": "Pool build_pool",
    "teaching.session": "Session",
    "teaching.simulate": "Setting experiment means_by_setting simulate simulated_topics",
    "teaching.stopping": "History Stopper",
    "report.displays": "CalibrationBands PrecisionBySize PrecisionRecallBands ScoreHistogram",
    "report.write": "write_report",
    "training.names": "train_by_names",
    "training.self_training": "train_with_unlabelled",
    "training.updatable": "UpdateResult",
    "training.update": "learn undo_learn undo_step",
    "training.out_of_fold": "CrossValidation cross_validate",
    "training.train": "train",
}
HOMES = dict(sorted((name, module) for module, names in _NAMES_IN.items() for name in names.split()))
__all__ = [*HOMES]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'textcat' has no attribute {name!r}; it has {', '.join(HOMES)}")
    return getattr(import_module(f"textcat.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *HOMES])

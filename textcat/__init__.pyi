"""The names that `textcat` imports at their first use."""

from textcat.corpus.catalogue import open_corpus as open_corpus
from textcat.corpus.vocabulary import Vocabulary as Vocabulary
from textcat.documents import Corpus as Corpus
from textcat.errors import TextcatError as TextcatError
from textcat.evaluation.at_k import evaluate_at_k as evaluate_at_k
from textcat.evaluation.evaluation import Evaluation as Evaluation
from textcat.evaluation.evaluation import MeasuredOn as MeasuredOn
from textcat.evaluation.evaluation import evaluate as evaluate
from textcat.features.store import open_rows as open_rows
from textcat.features.store import write_rows as write_rows
from textcat.features.tfidf import TfIdf as TfIdf
from textcat.features.tokens import Tokens as Tokens
from textcat.margin import rules as rules
from textcat.margin.learners import PA as PA
from textcat.margin.learners import PAM as PAM
from textcat.margin.learners import PAUM as PAUM
from textcat.margin.learners import Alma as Alma
from textcat.margin.learners import Cramma as Cramma
from textcat.margin.learners import DynamicMargin as DynamicMargin
from textcat.margin.learners import LMargitron as LMargitron
from textcat.margin.learners import Micra as Micra
from textcat.margin.learners import Romma as Romma
from textcat.margin.learners import TMargitron as TMargitron
from textcat.margin.problems import Problem as Problem
from textcat.margin.problems import Solution as Solution
from textcat.margin.solve import solve as solve
from textcat.model.storage import load as load
from textcat.model.storage import save as save
from textcat.model.tagger import Tagger as Tagger
from textcat.reading.document import Document as Document
from textcat.reading.records import InputSettings as InputSettings
from textcat.recipe import Recipe as Recipe
from textcat.recipe import read_recipe as read_recipe
from textcat.report.displays import CalibrationBands as CalibrationBands
from textcat.report.displays import PrecisionBySize as PrecisionBySize
from textcat.report.displays import PrecisionRecallBands as PrecisionRecallBands
from textcat.report.displays import ScoreHistogram as ScoreHistogram
from textcat.report.write import write_report as write_report
from textcat.tagging.output import OutputSettings as OutputSettings
from textcat.tagging.run import tag_archive as tag_archive
from textcat.training.train import train as train
from textcat.training.update import UpdateResult as UpdateResult
from textcat.training.update import learn as learn
from textcat.training.update import undo_learn as undo_learn

__version__: str

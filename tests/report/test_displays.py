"""Displays draw the evaluation's own figures, on axes of their own or on those that are given."""

import numpy as np
import pytest
from evaluations import EVALUATION, LABELS, SCORES
from scipy import sparse
from sklearn.calibration import calibration_curve

import textcat
from textcat.base.calibration import Calibration
from textcat.base.errors import TextcatError

CALIBRATION = Calibration(np.ones(3), np.zeros(3))
OPTIONS = {
    "PrecisionRecallBands": {},
    "CalibrationBands": {"calibration": CALIBRATION},
    "ScoreHistogram": {"topic": "mid"},
    "PrecisionBySize": {},
}


@pytest.fixture(autouse=True)
def pyplot():
    """The plots of matplotlib, whose import takes long: not for processes that run other tests."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_display_is_drawn_of_an_evaluation_or_of_predictions_and_again_on_other_axes(name, pyplot):
    display = getattr(textcat, name).from_evaluation(EVALUATION, **OPTIONS[name])
    assert display.figure_ is display.ax_.figure
    axes = pyplot.subplots()[1]
    assert display.plot(ax=axes) is display
    assert display.ax_ is axes
    topics = [row.topic for row in EVALUATION.topics]
    other = getattr(textcat, name).from_predictions(
        sparse.csr_array(LABELS), SCORES, topics, [4, 8, 2], bands=["ALL", "TOP1"], ax=axes, **OPTIONS[name]
    )
    assert other.ax_ is axes
    assert repr(vars(other).keys()) == repr(vars(display).keys())


def test_the_bands_have_their_mean_precision_in_the_legend():
    display = textcat.PrecisionRecallBands.from_evaluation(EVALUATION)
    assert display.average_precision == {"ALL": 0.875, "TOP1": 0.75}
    assert [text.get_text() for text in display.ax_.get_legend().texts] == ["ALL (MAP 0.875)", "TOP1 (MAP 0.750)"]
    line = display.ax_.lines[1]
    np.testing.assert_allclose(line.get_ydata(), display.precision["TOP1"])
    assert (line.get_ydata()[0], line.get_ydata()[-1]) == (1, 0.5)


def test_calibration_is_that_of_scikit_learn():
    display = textcat.CalibrationBands.from_evaluation(EVALUATION, calibration=CALIBRATION, n_bins=4)
    probabilities = 1 / (1 + np.exp(-SCORES.astype(float)))
    right, predicted = calibration_curve(LABELS.ravel(), probabilities.ravel(), n_bins=4)
    np.testing.assert_allclose(display.predicted["ALL"], predicted)
    np.testing.assert_allclose(display.right["ALL"], right)
    assert display.documents["ALL"].sum() == LABELS.size


def test_topics_without_a_positive_are_not_drawn_by_size():
    display = textcat.PrecisionBySize.from_evaluation(EVALUATION)
    assert (display.topics, display.train_sizes.tolist()) == (["mid", "big[0]"], [4, 8])


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(TextcatError, match=r"no topic 'tea': give topic=, one of mid, big\[0\]"):
        textcat.ScoreHistogram.from_evaluation(EVALUATION, topic="tea")
    with pytest.raises(TextcatError, match=r"give calibration=tagger\.decisions\.calibration"):
        textcat.CalibrationBands.from_evaluation(EVALUATION)
    kept = type(EVALUATION).from_dict(EVALUATION.as_dict())
    with pytest.raises(TextcatError, match="this evaluation has none"):
        textcat.PrecisionRecallBands.from_evaluation(kept)

"""The topics of highest score are found among many, whichever place they have."""

import numpy as np
from cases import every

from textcat.model.scorer import highest


@every("n_topics", [63, 64, 65, 200, 1000])
@every("k", [1, 10, 63])
def test_the_highest_of_many_scores_are_found_wherever_they_stand(n_topics, k):
    rng = np.random.default_rng(n_topics)
    scores = rng.integers(0, 9, size=(30, n_topics)).astype(np.float32)
    scores[10:20] = np.sort(scores[10:20])  # each block has higher ones than the one before
    scores[20:][rng.random((10, n_topics)) < 0.9] = np.nan
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(highest(scores, k)[0], order)
    np.testing.assert_array_equal(highest(scores, k)[1], np.take_along_axis(scores, order, axis=1))

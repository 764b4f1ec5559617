"""A small evaluation and a small comparison, for tests of what is printed and written of them."""

import numpy as np

from textcat.evaluation.evaluation import evaluate
from textcat.evaluation.significance import Comparison, Difference, MeasureComparison, TopicComparison

LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]])
SCORES = np.array([[2.0, -1.0, 1.0], [1.0, 3.0, -1.0], [-1.0, 2.0, -1.0], [-2.0, -2.0, -1.0]], dtype=np.float32)
FACTS = {
    "tau_pos": [1.5, np.nan, 2.0],
    "support": [10, 20, 60],
    "shuffled": [True, False, True],
    "stopped": ["converged", "converged", "epochs"],
}
EVALUATION = evaluate(SCORES, LABELS, ["mid", "big[0]", "none"], [4, 8, 2], 16, spec=["ALL", "TOP1"], facts=FACTS)

COMPARISON = Comparison(
    test_documents=4,
    n_resamples=100,
    seed=0,
    measures=(
        MeasureComparison("ALL", "macro_average_precision", (0.5, 0.75), (Difference(0.25, (-0.1, 0.6), 0.04, 0.5),)),
        MeasureComparison("ALL", "micro_f1", (0.5, 0.25), (Difference(-0.25, (-0.5, 0.0), 0.04, None),)),
        MeasureComparison("LAST1", "macro_f1", (None, None), (None,)),
    ),
    topics=(TopicComparison("[b]", 3, 2, (0.5, 1.0), (0.5,)), TopicComparison("a", 1, 1, (1.0, 0.75), (-0.25,))),
)

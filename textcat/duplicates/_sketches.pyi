import numpy as np

SKETCH_BYTES: int
SAMPLED: int
ENTRIES: int
COUNTERS: int

def sketch(
    texts: list[bytes], fingerprints: np.ndarray, sizes: np.ndarray, bins: np.ndarray, words: np.ndarray
) -> None: ...
def enter(posted: np.ndarray, first: int, head: np.ndarray, bits: int, after: np.ndarray) -> None: ...
def assign(
    fingerprints: np.ndarray,
    sizes: np.ndarray,
    bins: np.ndarray,
    words: np.ndarray,
    known_fingerprints: np.ndarray,
    known_sizes: np.ndarray,
    known_bins: np.ndarray,
    group_of: np.ndarray,
    head: np.ndarray,
    bits: int,
    after: np.ndarray,
    counts: np.ndarray,
    samples: int,
    n: int,
    least: float,
    groups: np.ndarray,
    similarities: np.ndarray,
    posted: np.ndarray,
    rows: np.ndarray,
) -> int: ...

"""The documents of an archive, to be ranked and shown: texts, vectors, near-duplicates, embeddings."""

from textcat.teaching.pool.index import PoolError
from textcat.teaching.pool.pool import Pool, build_pool, open_pool

__all__ = ["Pool", "PoolError", "build_pool", "open_pool"]

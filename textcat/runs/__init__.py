"""Resumable runs over inputs of any size: read batches, work on them in workers, write shards and a journal."""

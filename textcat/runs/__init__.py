"""Run over inputs of any size, so that a run can resume: read batches, work on these in workers, write shards."""

"""Run over inputs of any size, resumably: read batches, process them in workers, write shards."""

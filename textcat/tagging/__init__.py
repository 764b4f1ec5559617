"""Archives of any size and many formats, read in batches, tagged, and written in shards."""

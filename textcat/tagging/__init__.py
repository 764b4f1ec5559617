"""Tag archives of any size and of many formats: read batches, tag these, and write the tags in shards."""

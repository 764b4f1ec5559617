"""Archives of any size and many formats, read in pieces, tagged, and written in shards."""

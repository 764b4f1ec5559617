"""Read documents of many formats from files, folders, archives, URLs and pipes: for training and for tagging.

`sources._find` takes the inputs, `batches._read_batches` cuts them for tagging, and `formats._batch_records` reads what
a batch holds; `batches._read_documents` reads all of them with their labels, for training.
"""

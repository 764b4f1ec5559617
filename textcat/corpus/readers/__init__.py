"""One file per format, each an iterator of documents."""

"""Read documents of many formats from files, folders, archives, URLs and pipes: for training and for tagging.

For tagging, `sources.find_sources` finds the inputs, `batches.read_batches` cuts them into batches, and
`formats._batch_records` reads the records of a batch; for training, `batches.read_documents` reads them with labels.
"""


def text_of_file(name: str, data: bytes) -> dict[str, str]:
    """Return the texts of a document in bytes.

    Nothing but these bytes is read: no file, and nothing that the document refers to.

    Parameters
    ----------
    name : str
        Its ending tells the format: HTML, ``.eml``, Markdown, ``.docx``, PDF or text; else the content does.
    data : bytes

    Returns
    -------
    dict
        Its zones: ``title``, if it has one, and ``body``.

    Raises
    ------
    TextcatError
        If it has another format, is broken or encrypted, has no text, or is too large.
    """
    from textcat.reading.batches import read_zones  # here, as most that needs a part of this package reads nothing

    return read_zones(name, data)

"""Read documents of many formats from files, folders, archives, URLs and pipes: for training and for tagging.

`sources._find` takes the inputs, `batches._read_batches` cuts them for tagging, and `formats._batch_records` reads what
a batch holds; `batches._read_documents` reads all of them with their labels, for training.
"""


def text_of_file(name: str, data: bytes) -> dict[str, str]:
    """Return the texts of a document in bytes.

    Nothing but these bytes is read: no file, and nothing that the document refers to.

    Parameters
    ----------
    name : str
        Its ending tells the format: HTML, ``.eml``, Markdown, ``.docx``, PDF or text; if there is none, the content.
    data : bytes

    Returns
    -------
    dict
        Its zones: ``title``, if it has one, and ``body``.

    Raises
    ------
    TextcatError
        If it is none of these, broken, encrypted, without text, or too large.
    """
    from textcat.reading.batches import _zones_of  # here, as most that needs a part of this package reads nothing

    return _zones_of(name, data)

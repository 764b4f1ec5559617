"""Files read as a corpus is, by its reader and the options of a card."""

import tempfile
from pathlib import Path

from textcat.corpus.cards import Card
from textcat.reading import InputSettings, read_documents
from textcat.reading.batches import read_labelled

_FOLDER = tempfile.TemporaryDirectory(prefix="textcat-test-")


def card_of(reader, **options):
    """A card with nothing but a reader and its options."""
    return Card("card", Path(), reader, ["card"], options=options)


def read(reader, *paths, **options):
    """The documents of files, folders and archives."""
    card = card_of(reader, **options)
    return [document for path in paths for document in read_documents([path], card.settings(), card.wanted)]


def read_one_by_one(reader, path, **options):
    """The same as they come, before the order is made that of names."""
    card = card_of(reader, **options)
    return (record for _, record in read_labelled([path], card.settings(), card.wanted))


def names(path):
    """The names of all files in a folder or archive."""
    found = []
    read_documents([path], InputSettings(), found.append)  # which returns nothing, so that no file is read
    return found


def parse(reader, name, data, *, folder="", **options):
    """The documents of one file; with a folder, as the only one in it."""
    path = Path(_FOLDER.name, folder or "corpus", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    root = Path(_FOLDER.name, folder) if folder else path
    return read_documents([root], card_of(reader, **options).settings(), lambda inside: inside in (name, path.name))

"""Read documents of many formats from files, folders, archives, URLs and pipes: for training and for tagging.

For tagging, `find_sources` finds the inputs, `read_batches` cuts them into batches, and `batch_records` reads the
records of a batch; for training, `read_documents` reads them with labels.
"""

from importlib import import_module
from typing import Any

# Names used by other packages, and the modules that define them. Each is imported at its first use, so that code that
# needs only settings loads only settings. Type checkers read the names in __init__.pyi, which `python
# tests/test_front_door.py --write` generates.
_NAMES_IN = {
    "batches": "check_pipes read_batches",
    "changes": "Change ChangeKind FileState",
    "compression": "plain_name unpacked_stream",
    "containers": "ContainerEntry open_file",
    "dates": "time_of",
    "decoding": "is_cut_by_characters is_of_single_bytes unmarked_encoding",
    "discovery": "find_sources matches",
    "document": "Document",
    "faults": "FaultKind UnreadableError",
    "forked": "STREAM_ERRORS ForkedCorpus read_forked",
    "formats": "FORMATS NEWS REFERENCES SCANS batch_records",
    "formats.annif": "CATEGORIES SUBJECTS",
    "formats.json_values": "ValueSpan members_of values_in",
    "formats.news": "IPTC_URIS OWN Subject is_own subject_as_given",
    "formats.parquet": "packed_column",
    "formats.rcv1": "is_wanted_story",
    "formats.references": "common_fields ris_entry",
    "formats.xml_elements": "ElementSpan child_elements element_at",
    "formats.xml_items": "declared_encoding",
    "in_memory": "as_documents document_stream named_in_training warn_of_unnamed_texts",
    "input_settings": "ALL_FIELDS EVERY_FIELD LAST SETTINGS InputSettings LabelSettings is_matched",
    "labelled": "DamagedError read_documents",
    "layouts": "folders_of part_of shared_depth",
    "maildir": "is_message placed",
    "records": "NO_VERSION START_OVER Batch BatchNumber Block Checkpoint PipeState Record Rejection",
    "recognition": "ARCHIVES FOLDERS format_by_name format_of is_read_alike named_format",
    "shares": "Share",
    "single_file": "text_of_file",
    "sources": "Source is_url path_inside",
    "streams": "STEP ByteStream",
    "urls": "file_system",
    "whole": "read_records",
    "versions_of_news": "ItemVersion VersionState superseded_reason",
}
HOMES = dict(sorted((name, f"reading.{module}") for module, names in _NAMES_IN.items() for name in names.split()))
__all__ = ["InputSettings", "LabelSettings", "text_of_file"]  # names for users; all other names are for other packages


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'textcat.reading' has no attribute {name!r}; it has {', '.join(HOMES)}")
    return getattr(import_module(f"textcat.{HOMES[name]}"), name)

"""Files of a run: compressed or not, whole, and the same each time."""

import pytest
from tagged_files import file_of

from textcat.reading import Record
from textcat.tagging.output import ENCODERS, OutputSettings, TaggedRecords, file_format

# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["jsonl", "csv"])
def test_a_zst_file_is_one_frame_of_the_plain_file(to):
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    documents = [(Record(str(i), {}, source="s", position=i), [("t", 0.5, 0.5, None)]) for i in range(1000)]
    packed = file_of(documents, OutputSettings(to, "zst"))
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == file_of(documents, OutputSettings(to))


def test_what_was_flushed_can_be_read_before_the_file_ends():
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    made = file_format(OutputSettings(compress="zst"))
    reader = zstandard.ZstdDecompressor().decompressobj()
    for row in (b"one\n", b"two\n"):
        assert reader.decompress(made.begin() if row == b"one\n" else b"") == b""
        assert reader.decompress(made.add(row) + made.flush()) == row


def test_a_form_makes_one_file_after_the_other():
    for to in ENCODERS:
        settings, rows = OutputSettings(to), TaggedRecords([Record("a", {}, source="b", position=1)], [[]], [None])
        made, block = file_format(settings), ENCODERS[to](rows, settings)
        files = [made.begin() + made.add(block) + made.end() for _ in range(2)]
        assert files[0] == files[1]

"""Write texts as cells of CSV that spreadsheet programs do not run as formulas; read back the same texts."""

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

# Excel, LibreOffice and Google Sheets interpret a cell that begins with one of these as a formula; some skip a control
# character before it (OWASP, "CSV injection"). The last four are full-width forms, which East Asian versions accept,
# too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NEEDS_QUOTES = re.compile(r'^[" ]|[;\r\n]')


def safe_cell(value: Any) -> Any:
    """Return a value; put an apostrophe before a text that spreadsheet programs would run as a formula.

    A text that already has apostrophes before a formula gets one more, so that `plain_text` returns every text as it
    was. Numbers stay numbers, negative ones too.
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip("'").startswith(_FORMULA) else value


def plain_text(cell: str) -> str:
    """Return the text of a cell, without the apostrophe that `safe_cell` may have added."""
    return cell[1:] if cell.startswith("'") and safe_cell(cell) != cell else cell


def list_cell(texts: Iterable[str]) -> str:
    """Return texts as one cell, such as "corn; wheat"; texts that have a semicolon are in quotation marks."""
    return "; ".join(map(_quoted_if_needed, texts))


def _quoted_if_needed(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def texts_of_cell(cell: str) -> list[str]:
    """Return the texts of a cell that `list_cell` has made, or that a person has filled in."""
    rows = csv.reader(io.StringIO(cell, newline=""), delimiter=";", skipinitialspace=True)
    return [text for row in rows for text in row]

"""Write texts as cells of CSV that spreadsheet programs show as they are, and do not run as formulas."""

from typing import Any

# Excel, LibreOffice and Google Sheets interpret a cell that begins with one of these as a formula; some skip a control
# character before it (OWASP, "CSV injection"). The last four are full-width forms, which East Asian versions accept,
# too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def safe_cell(value: Any) -> Any:
    """Return a value; put an apostrophe before a text that spreadsheet programs would run as a formula.

    Numbers stay numbers, negative ones too.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def plain_text(cell: str) -> str:
    """Return the text of a cell, without the apostrophe that `safe_cell` may have added."""
    return cell[1:] if cell.startswith("'") and safe_cell(cell[1:]) == cell else cell

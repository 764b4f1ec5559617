"""Find duplicates: texts that repeat an earlier one, whole, cut, reworded, or with OCR errors."""

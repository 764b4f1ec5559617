"""Find duplicates: texts that repeat an earlier text, as a whole or cut, reworded, or with errors of recognition."""

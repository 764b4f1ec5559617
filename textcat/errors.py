"""The one exception that tells a user of a mistake or of bad input, in a sentence."""


class TextcatError(Exception):
    """Something the user can mend: the message says what happened, the value, and the remedy."""

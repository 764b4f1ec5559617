"""Name the faults of inputs that cannot be read."""

from enum import IntEnum, auto


class FaultKind(IntEnum):
    """List the kinds of faults in the input, which decide the wording of errors about a corpus."""

    CONTENT = auto()  # the text of the fault includes the remedy
    ENCODING = auto()
    ACCESS = auto()
    DAMAGE = auto()  # the detail is what is damaged
    UNSAFE = auto()  # the detail is what in an archive must not be read
    LINK = auto()  # to a folder; or a device, a pipe or a socket
    DANGLING = auto()  # a link that leads nowhere
    UNLISTED = auto()  # a folder that cannot be listed
    STORY = auto()  # the detail is a sentence that names the story
    CHANGED = auto()  # the input shrank or was replaced while it was read
    LEFT_OUT = auto()  # whole, but no document, as a package of news; the detail says so of all of this kind, or is ""


class UnreadableError(Exception):
    """Report a file or record that cannot be read; the reason ends a sentence whose subject is that file or record."""

    def __init__(self, fault: str, kind: FaultKind = FaultKind.CONTENT, detail: str = "", n_expected: int = -1) -> None:
        super().__init__(fault, kind, detail, n_expected)
        self.fault, self.kind, self.detail = fault, kind, detail
        self.n_expected = n_expected  # bytes that the stored input should have; -1 where this is not the fault

    def __str__(self) -> str:
        """Return the reason."""
        return self.fault


class RefusedError(Exception):
    """Report a fault in the input that ends reading, because documents with labels are read and none may be missing.

    `source` is the name of the source. `part` is the unreadable part, such as "Line 3", or "" for the whole source.
    `fault` is the reason.
    """

    def __init__(self, source: str, part: str, fault: UnreadableError) -> None:
        super().__init__(source, part, fault)
        self.source, self.part, self.fault = source, part, fault


def shrunk_error(n_expected: int, n_found: int, what: str = "its rest is") -> UnreadableError:
    """Return the error for an input that has fewer bytes (`n_found`) than when reading began (`n_expected`).

    `what` completes the sentence "so … missing", as "its rest is" does.
    """
    sizes = f"had {n_expected:,} bytes when reading began, but has {n_found:,} now"
    fault = f"{sizes}, so {what} missing: restore it, then start again"
    return UnreadableError(fault, FaultKind.CHANGED, sizes, n_expected)


def encoding_error(encoding: str, position: object) -> UnreadableError:
    """Return the error for bytes that are invalid in an encoding; `position` is the number of the first such byte."""
    fault = f"is not {encoding} (byte {position})"
    return UnreadableError(f"{fault}: name its encoding with --encoding", FaultKind.ENCODING, fault)

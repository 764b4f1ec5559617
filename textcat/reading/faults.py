"""Faults of inputs that cannot be read."""

from enum import IntEnum, auto


class FaultKind(IntEnum):
    """The kinds of faults in the input, which determine the wording of errors about a corpus."""

    CONTENT = auto()  # the detail includes the remedy
    ENCODING = auto()
    ACCESS = auto()
    DAMAGE = auto()  # the detail says what is damaged
    UNSAFE = auto()  # the detail names the forbidden entry of an archive
    LINK = auto()  # a link to a folder; or a device, a pipe or a socket
    DANGLING = auto()  # a dangling link
    UNLISTED = auto()  # a folder that cannot be listed
    STORY = auto()  # the detail is a sentence that names the story
    CHANGED = auto()  # the input shrank or was replaced while it was read
    # valid, but not a document, such as a package of news; the detail applies to all of this kind, or is ""
    LEFT_OUT = auto()


class UnreadableError(Exception):
    """Raised for a file or record that cannot be read; the reason ends a sentence about it."""

    def __init__(
        self,
        fault: str,
        kind: FaultKind = FaultKind.CONTENT,
        detail: str = "",
        n_expected: int = -1,
        needs: str = "",
    ) -> None:
        super().__init__(fault, kind, detail, n_expected, needs)
        self.fault, self.kind, self.detail = fault, kind, detail
        self.n_expected = n_expected  # expected bytes of the stored input; -1 for other faults
        self.needs = needs  # name of the module that is not installed; "" for other faults

    def __str__(self) -> str:
        """Return the reason."""
        return self.fault


class RefusedError(Exception):
    """Raised for a fault that ends reading, because documents with labels are read and none may be missing.

    `source` is the name of the source. `part` is the unreadable part, such as "Line 3", or "" for the whole source.
    `fault` is the reason.
    """

    def __init__(self, source: str, part: str, fault: UnreadableError) -> None:
        super().__init__(source, part, fault)
        self.source, self.part, self.fault = source, part, fault


def shrunk_error(n_expected: int, n_found: int, what: str = "its rest is") -> UnreadableError:
    """Return the error for an input that has fewer bytes (`n_found`) than when reading began (`n_expected`).

    `what` is the subject and verb of the end of the message, as in "its rest is missing".
    """
    sizes = f"had {n_expected:,} bytes when reading began, but has {n_found:,} now"
    fault = f"{sizes}, so {what} missing: restore it, then start again"
    return UnreadableError(fault, FaultKind.CHANGED, sizes, n_expected)


def encoding_error(encoding: str, position: object) -> UnreadableError:
    """Return the error for bytes that are invalid in an encoding; `position` is the number of the first such byte."""
    fault = f"is not {encoding} (byte {position})"
    return UnreadableError(f"{fault}: name its encoding with --encoding", FaultKind.ENCODING, fault)

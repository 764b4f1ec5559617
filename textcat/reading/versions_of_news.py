"""Remove versions of news items that newer versions replace."""

from collections.abc import Iterable, Iterator
from enum import IntEnum, auto
from typing import NamedTuple

from textcat.reading.faults import FaultKind
from textcat.reading.records import NO_VERSION, Record, Rejection


class VersionState(IntEnum):
    """What became of a version of a news item when its batch was read."""

    READ = auto()
    OLDER = auto()  # left out, because a newer version is in the same batch
    LEFT_OUT = auto()  # left out for another reason, such as a cancellation


class ItemVersion(NamedTuple):
    """The version of a news item, its source and position in the input, and its state."""

    id: str
    version: tuple[int, int]  # as in `Record`
    source: str
    position: int
    state: VersionState


def without_superseded(
    items: Iterable[Record | Rejection], all_versions: bool = False, versions: list[ItemVersion] | None = None
) -> Iterator[Record | Rejection]:
    """Yield items, with Rejections in place of older versions, and of news that is left out (as canceled, for example).

    Of several records with the same id, only the one with the highest version is kept; of equal versions, the last one.
    A record without a version is kept in any case. With `all_versions`, older versions are kept, too. The version of
    each record that has one is appended to the list `versions`, in the order of the records.
    """
    items = list(items)
    newest: dict[str, Record] = {}
    for item in items if not all_versions else ():
        if isinstance(item, Record) and item.version != NO_VERSION:
            before = newest.get(item.id)
            if before is None or item.version >= before.version:
                newest[item.id] = item
    for item in items:
        if not isinstance(item, Record):
            yield item
            continue
        reason, state = item.left_out, VersionState.LEFT_OUT if item.left_out else VersionState.READ
        has_version = item.version != NO_VERSION
        if has_version and (winner := newest.get(item.id, item)) is not item:
            reason, state = superseded_reason(item.id, bool(winner.left_out)), VersionState.OLDER
        if has_version and versions is not None:
            versions.append(ItemVersion(item.id, item.version, item.source, item.position, state))
        due, kind = (item.due, item.kind) if state is VersionState.LEFT_OUT else (None, FaultKind.LEFT_OUT)
        yield Rejection(item.source, item.position, reason, kind=kind, due=due) if reason else item


def superseded_reason(id_: str, is_withdrawn: bool) -> str:
    """Return the reason for rejecting an older version of a news item, given its id.

    The reason is in the past tense, because the newer version may itself be removed or replaced later. `is_withdrawn`
    is True if the newer version was canceled or the like.
    """
    if is_withdrawn:
        return f"A newer version of {id_!r} took its place, and was canceled, killed, withheld or under embargo."
    return f"A newer version of {id_!r}, or the same again, took its place."

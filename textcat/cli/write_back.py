"""The options `--write-back`, `--codes` and `--copy-rest` of the command `tag`: write news files with their tags."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import BadParameter, Option

from textcat.base.disk import expanded, link_target, resolved
from textcat.base.errors import TextcatError
from textcat.cli import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from textcat.runs.results import Counts
    from textcat.tagging.output import OutputSettings
    from textcat.tagging.planning import TaggingPlan
    from textcat.tagging.write_back import WriteBackSummary

# Settings that have no effect on files with tags in them.
_OF_SHARDS = ("to", "compress", "explain", "keep_fields", "per_document", "no_csv_escape", "duplicates")
_back = partial(Option, rich_help_panel="Tags in news files")


class WriteBack(NamedTuple):
    """Options of writing tags into copies of news files.

    They are the folder of the copies, a table with the agency's code of each topic, and whether the files into which no
    tags are written are copied, too.
    """

    folder: Path | None = None
    codes: Path | None = None
    copy_rest: bool = False

    def writer(
        self, inputs: Sequence[str], has_out: bool, **options: Any
    ) -> "Callable[[TaggingPlan], WriteBackSummary] | None":
        """Return a function that writes the news files of a plan with their tags; None if no option asks for it.

        `has_out`: tags are also written to shards.
        """
        if self.folder is None:
            return None
        from textcat.tagging.write_back import base_of, write_back

        folder, codes = link_target(self.folder), str(self.codes or "")
        base = base_of(inputs)  # not later, as a watched folder may be missing for a moment

        def write(plan: "TaggingPlan") -> "WriteBackSummary":
            summary = write_back(plan, folder, base, codes, copy_rest=self.copy_rest, **options)
            options.pop("restart", None)  # the first round in a watched folder has done it already
            _print_formats(summary, has_out)
            return summary

        return write

    def check(self, inputs: Sequence[str] | None, out: Path | None, output: "OutputSettings") -> None:
        """Raise BadParameter or TextcatError if options or folders contradict each other."""
        if self.folder is None:
            if self.codes is not None:
                raise BadParameter("--codes is for the tags in files: add --write-back")
            if self.copy_rest:
                raise BadParameter("--copy-rest is for a folder of files with tags: add --write-back")
            return
        if not inputs or "-" in inputs:
            raise BadParameter("--write-back needs files or folders as inputs")
        unused = [name for name in _OF_SHARDS if getattr(output, name) != output._field_defaults[name]]
        if out is None and unused:
            raise BadParameter(
                f"--{unused[0].replace('_', '-')} is for tags in the folder of --out: leave it out, or add that"
            )
        if out is not None:
            folder, out_folder = resolved(self.folder), resolved(out)
            if folder == out_folder or folder in out_folder.parents or out_folder in folder.parents:
                raise TextcatError(f"--out {out} and --write-back {self.folder} overlap: write to separate folders.")

    def check_inputs(self, plan: "TaggingPlan", *, watch: bool = False) -> None:
        """Raise TextcatError if files are to be written back, and the inputs of a plan cannot be."""
        if self.folder is not None:
            from textcat.tagging.write_back import check_inputs

            check_inputs(plan, expanded(self.folder), skip_archives=self.copy_rest or watch)


def write_back_options(
    write_back: Annotated[
        Path | None,
        _back(help="Write each file of ninjs, NewsML-G2, NITF, RSS and Atom into this folder, with its tags in it."),
    ] = None,
    codes: Annotated[
        Path | None,
        _back(
            help="With --write-back, a table (CSV or TSV) with the columns topic and code or uri; also scheme, name."
        ),
    ] = None,
    copy_rest: Annotated[
        bool, _back("--copy-rest", help="With --write-back, copy all other files as they are, so that none is missing.")
    ] = False,
) -> WriteBack:
    """Return the options of writing news files again with their tags."""
    return WriteBack(write_back, codes, copy_rest)


def written_as_dict(summary: "WriteBackSummary", folder: Path) -> dict[str, Any]:
    """Convert the summary of a run that wrote tags back into files to a dict of JSON values."""
    files = {name: getattr(summary, name) for name in ("written", "before", "left_out")}
    cost = {"seconds": summary.seconds, "peak_memory": summary.memory, "output": str(folder)}
    return {
        **summary.counts.as_dict(),
        **files,
        "formats": dict(summary.formats),
        "copied": dict(summary.copied),
        **cost,
    }


def show_written(console: "Console", summary: "WriteBackSummary", folder: Path, form: str) -> None:
    """Print how many files were written, and how many were left out."""
    from textcat.cli.printing import Facts, Table, show

    counts = summary.counts
    facts = {
        "files written": summary.written,
        "copied as they are": summary.copied.total() or None,
        "written before": summary.before or None,
        "left out": summary.left_out or None,
        "of other formats": summary.formats.total() or None,
        "items tagged": counts.tagged,
        "without a topic": counts.untagged or None,
        "rejected": (counts.faults if summary.copied else counts.rejected) or None,  # copied files are not missing
        "seconds": summary.seconds,
        "peak memory": summary.memory,
        "output": str(folder),
    }
    copied = [{"copied": n, "because": reason} for reason, n in summary.copied.most_common()]
    show(console, form, written_as_dict(summary, folder), Facts(facts), Table(copied), rules_not_met(counts))


def rules_not_met(counts: "Counts") -> str:
    """Return a sentence on the house rules that applied to no document; "" if there are none."""
    unmet = [rule for rule, n in counts.rules.items() if not n]
    return f"Rules that no document met: {'; '.join(unmet)}." if unmet else ""


def _print_formats(summary: "WriteBackSummary", has_out: bool) -> None:
    """Print on standard error the formats that have no place for tags."""
    for form, n in summary.formats.most_common():
        where = "its tags are in the folder of --out only" if has_out else "write them with --out"
        are = "files are" if n > 1 else "file is"
        terminal.say(f"{n:,} {are} {form}, which has no place for tags: {where}.")


def is_whole(summary: "WriteBackSummary", has_out: bool) -> bool:
    """Return whether no file that should be written was left out.

    If tags are also written to shards, files that cannot hold tags may be left out.
    """
    return not (summary.left_out or summary.counts.faults or (summary.formats and not has_out))

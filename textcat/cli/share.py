"""The commands `push` and `pull`, which copy models to and from the Hugging Face hub and URLs."""

import os
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, echo

from textcat.base.disk import expanded
from textcat.cli import common, terminal


def push(
    model: common.ModelFolder,
    target: Annotated[
        str, Argument(help="hf://OWNER/NAME[@REVISION], OWNER/NAME, or a folder as a URL, such as s3://BUCKET/FOLDER.")
    ],
    force: Annotated[bool, Option("--force", help="Replace another model there.")] = False,
    public: Annotated[bool, Option("--public", help="Make a new repository public, not private.")] = False,
) -> None:
    """Copy a model to the Hugging Face hub, or to a folder at a URL, after checking its files.

    Credentials are those of the libraries: HF_TOKEN or `hf auth login` for the hub, and for example AWS's variables for
    S3.
    """
    from textcat.sharing import copies

    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    address = copies.push(model, target, force=force, public=public, stages=terminal.new_stages())
    echo(f"Pushed: {address} ({_described_size(model)})")
    if kept := copies.kept_documents(model):
        echo(kept)


def pull(
    source: Annotated[
        str,
        Argument(help="hf://OWNER/NAME[@REVISION], OWNER/NAME, or the model's folder as a URL, of any fsspec kind."),
    ],
    folder: Annotated[Path | None, Argument(help="Folder to write the model to.", show_default="models/NAME")] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing model.")] = False,
    max_size: Annotated[int, Option(min=1, help="Refuse a model of more megabytes.")] = 10_000,
) -> None:
    """Copy a model from the Hugging Face hub or a URL to a folder, and verify it; discard an incomplete copy.

    No code from the model is executed. Other files at the source are not copied.
    """
    from textcat.sharing import copies

    path = copies.pull(source, folder, force=force, max_bytes=max_size * 10**6, stages=terminal.new_stages())
    echo(f"Model: {folder or path.relative_to(Path.cwd())} ({_described_size(path)})")


def _described_size(folder: Path) -> str:
    sizes = [path.stat().st_size for path in expanded(folder).iterdir()]
    return f"{len(sizes)} files, {sum(sizes) / 1e6:,.1f} MB"

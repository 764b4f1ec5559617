"""Where the program begins: `textcat`, or `python -m textcat`."""

import gc


def main() -> None:
    """Run the command line."""
    gc.set_threshold(50_000)  # what is imported, and read, would be looked through again and again
    # Here, for the processes that a run starts import this module, too, and need no commands.
    from textcat.cli import main as run
    from textcat.lean_imports import keep_imports_lean

    keep_imports_lean()
    run()


if __name__ == "__main__":
    main()

"""Where the program begins: `textcat`, or `python -m textcat`."""


def main() -> None:
    """Run the command line."""
    # Here, for the processes that a run starts import this module, too, and need no commands.
    from textcat.cli import main as run
    from textcat.tagging._lean_imports import keep_imports_lean

    keep_imports_lean()
    run()


if __name__ == "__main__":
    main()

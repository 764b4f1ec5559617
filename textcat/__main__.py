"""Run the program: `textcat`, or `python -m textcat`."""

import gc
import signal


def main() -> None:
    """Prepare the process (Ctrl-C, garbage collection, imports), and run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during imports or at exit prints no traceback
    # otherwise the garbage collector would scan imported modules and documents again and again
    gc.set_threshold(200_000)
    # Imported here, because worker processes import this module too, and need no commands.
    from textcat.cli import main as run
    from textcat.lean_imports import keep_imports_lean

    keep_imports_lean()
    run()


if __name__ == "__main__":
    main()

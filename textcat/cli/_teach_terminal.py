"""Ask about documents in a terminal; an answer is one key, or one line."""

import os
import sys
from codecs import getincrementaldecoder
from select import select
from typing import TYPE_CHECKING, Any

from textcat.cli import terminal
from textcat.cli.printing import print_text
from textcat.teaching.advice import Advisor
from textcat.teaching.evidence import evidence_for
from textcat.teaching.export import reference_line
from textcat.teaching.progress import progress_of
from textcat.teaching.search import Search

if TYPE_CHECKING:
    from rich.text import Text

    from textcat.teaching.session import Question, Session

_ANSWERS = {"y": "yes", "n": "no", "s": "skip"}
_KEYS = "y yes, n no, s skip, u undo, / search, q quit"
_SHOWN = 2000  # characters of a text that are shown
_FOUND = 10
_NUMBERED = 9  # maximum number of exclusion reasons with a key
_EVERY = 10  # answers between two progress reports
_WAIT = 0.2  # seconds between two checks for a key


def ask(session: "Session", topics: list[str], person: str) -> None:
    """Ask a person about documents until no question is left, the input ends, or the key q is pressed.

    With several topics, one line can answer for several of them, in the order in which the prompt names them: "yn" is
    yes for the first topic, and no for the second. If the strategy of all topics is "uncertain", documents are asked
    about for all of them (see `Session.next_of`), and a line needs an answer for each topic without one. Otherwise,
    questions are about the first topic that has a question left.
    """
    for topic in topics:
        about = session.about(topic)
        if said := "\n".join(filter(None, (about.get("description"), about.get("criteria")))):
            print_text(terminal.console(), f"{topic}: {said}\n")
    advisor = Advisor(session.view)
    with _Keys(single=len(topics) == 1) as keys:
        _ask(session, topics, person, keys, advisor)
    for topic in topics:
        print_text(terminal.console(), _how_far(session, topic, advisor))


def _ask(session: "Session", topics: list[str], person: str, keys: "_Keys", advisor: Advisor) -> None:
    console = terminal.console()
    shown: tuple[str, int] | None = None
    while question := session.next_of(topics, person):
        if shown != (question.topic, question.position):
            console.print(_as_text(session, question), soft_wrap=True)
            shown = question.topic, question.position
        order = [*question.topics, *(topic for topic in topics if topic not in question.topics)]
        reasons = session.about(question.topic).get("exclusion_reasons", [])[:_NUMBERED]
        numbered = "".join(f", {number} no: {reason}" for number, reason in enumerate(reasons, 1))
        keys_pressed = keys.read(f"{', '.join(order)}? ({_KEYS}{numbered}) ")
        if keys_pressed is None or keys_pressed == "q":
            break
        if keys_pressed.startswith("/"):
            _search(session, question.topic, person, keys_pressed[1:] or keys.line("search: "), keys)
            shown = None
        elif keys_pressed == "u":
            undone = session.undo(person)
            console.print("There is nothing to undo." if undone is None else "Undone.")
        elif keys_pressed in map(str, range(1, len(reasons) + 1)):
            reason = reasons[int(keys_pressed) - 1]
            session.answer(question.topic, question.position, "no", person, exclusion_reason=reason)
            _report_now_and_then(session, question, advisor)
        elif len(question.topics) <= len(keys_pressed) <= len(order) and set(keys_pressed) <= _ANSWERS.keys():
            answers = dict(zip(order, (_ANSWERS[key] for key in keys_pressed), strict=False))
            answer = answers.pop(question.topic)
            session.answer(question.topic, question.position, answer, person, others=answers)
            _report_now_and_then(session, question, advisor)
        elif len(question.topics) > 1:
            example = "y".ljust(len(question.topics), "n")
            asked_for = ", ".join(question.topics)
            print_text(console, f"Write a letter for each of {asked_for}, such as {example}: {_KEYS}{numbered}.")
        else:
            print_text(console, f"Press one of: {_KEYS}{numbered}.")
    else:
        console.print("No question is left.")


def _report_now_and_then(session: "Session", question: "Question", advisor: Advisor) -> None:
    if (question.n_answers + 1) % _EVERY == 0:
        print_text(terminal.console(), _how_far(session, question.topic, advisor))


def _as_text(session: "Session", question: "Question") -> "Text":
    from rich.text import Text

    about = f"{question.topic}: " if len(question.topics) > 1 else ""
    why = terminal.harmless(f"{about}{question.why}, rank {question.rank:,}, score {question.score:.3f}")
    duplicates = f", near-duplicates: {len(question.duplicates):,}" if question.duplicates else ""
    shown = Text.assemble("\n", (terminal.harmless(question.id), "bold"), f"  {why}{duplicates}\n")
    if reference := reference_line(session.view.pool, question.position):
        shown.append(f"{terminal.harmless(reference)}\n")
    strongest, reasons = 0.0, evidence_for(session.view, question.topic, question.position).reasons
    strongest = max((abs(reason.contribution) for reason in reasons), default=0.0)
    for zone, text in question.zones.items():
        part = Text(terminal.harmless(text[:_SHOWN]), "bold" if zone == "title" else "")
        for reason in reversed(reasons):
            if strongest and abs(reason.contribution) > strongest / 10:
                for span in reason.spans:
                    if span.zone == zone:
                        part.stylize("green" if reason.contribution > 0 else "red", span.start, span.end)
        shown.append_text(part).append(" …\n" if len(text) > _SHOWN else "\n")
    return shown


def _how_far(session: "Session", topic: str, advisor: Advisor) -> str:
    so_far, advice = progress_of(session.view, topic), advisor.advise(topic)
    counts = f"{so_far.yes:,} yes, {so_far.no:,} no of {so_far.n_documents:,}"
    recall = ""
    if advice.band is not None:
        low, high = advice.band.estimate.low, advice.band.estimate.high
        recall = f"; recall {low:.0%} to {high:.0%}"
    return " ".join(filter(None, [f"{topic}: {counts}{recall}.", advice.advice, advice.about_band]))


def _search(session: "Session", topic: str, person: str, query: str | None, keys: "_Keys") -> None:
    """Show the documents that a search finds, and take answers such as "2y": yes for the second document.

    If the query is None or blank, do nothing.
    """
    console = terminal.console()
    if not query or not query.strip():
        return
    results = Search(session.view).find(query.strip(), topic, limit=_FOUND, person=person)
    console.print(f"{results.n_found:,} found.")
    for number, document in enumerate(results.documents, 1):
        text = " ".join(" ".join(document.zones.values()).split())
        print_text(console, f"{number:2} {document.answer or '-':4} {document.id}  {text[:100]}")
    while line := keys.line("number and y, n or s, such as 2y; Enter returns to the question: "):
        which, key = line[:-1].strip(), line[-1:]
        if which.isdecimal() and 0 < int(which) <= len(results.documents) and key in _ANSWERS:
            document = results.documents[int(which) - 1]
            session.answer(topic, document.position, _ANSWERS[key], person, "search")
        else:
            console.print("Write a number and a letter, such as 2y.")


class _Keys:
    """Read what a person types: single keys if `single` is set and the input is a terminal, otherwise lines.

    Inside the `with` block, a key is read as soon as it is pressed; after the block, the terminal is as before.
    """

    def __init__(self, *, single: bool):
        self._before: Any = None
        self._single = single and sys.stdin is not None and sys.stdin.isatty()

    def __enter__(self) -> "_Keys":
        if self._single:
            try:
                import termios
                import tty
            except ImportError:  # not available on this system
                self._single = False
            else:
                self._before = termios.tcgetattr(sys.stdin.fileno())
                tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)  # keys that were already pressed are answers, too
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

    def read(self, prompt: str) -> str | None:
        """Show a prompt, and return the key that was pressed or, if lines are read, the line.

        Return None if the input has ended.
        """
        if not self._single:
            return self.line(prompt)
        self._show(prompt)
        key = self._read_key(prompt)
        self._show(f"{key.strip()}\n")
        return None if key in ("", "\x04") else key

    def _read_key(self, prompt: str) -> str:
        """Wait for a key, and return it; return "" at the end of the input.

        If Ctrl-C is pressed just before a wait starts, it is noticed only after this wait, so waits are short. After
        Ctrl-Z, the shell makes the terminal read lines again, so this method makes it read single keys, and repeats the
        prompt.
        """
        import termios

        descriptor, decoder = sys.stdin.fileno(), getincrementaldecoder(sys.stdin.encoding)("replace")
        key = ""
        while not key:
            while not select([descriptor], [], [], _WAIT)[0]:
                if termios.tcgetattr(descriptor)[3] & termios.ICANON:
                    self.__exit__()
                    self.__enter__()
                    self._show(prompt)
            byte = os.read(descriptor, 1)
            key = decoder.decode(byte, final=not byte)
            if not byte:
                break
        return key

    def line(self, prompt: str) -> str | None:
        """Show a prompt, and return a line without its end; None if the input has ended."""
        single = self._before is not None
        self.__exit__()
        self._show(prompt)
        try:
            line = sys.stdin.readline() if sys.stdin is not None else ""
        finally:
            if single:
                self.__enter__()
        return line.strip() if line else None

    def _show(self, text: str) -> None:
        sys.stdout.write(terminal.harmless(text))
        sys.stdout.flush()

"""Documents and sessions for the tests of teaching, and what teaches until it is killed."""

import os
import random

from textcat import Document
from textcat.teaching.pool import Pool
from textcat.teaching.session import Session

SUBJECTS = {
    "strike": "workers union strike wages walkout picket miners pay talks",
    "wheat": "wheat grain harvest export tonnes crop corn farm",
    "gold": "gold silver ounce mine bullion price metal assay",
    "ships": "ship port cargo tanker vessel sea crew strait",
}


def documents(n=120, seed=3):
    """Short texts on four subjects, and some near-duplicates: copies of every tenth."""
    generator, found = random.Random(seed), []
    names = list(SUBJECTS)
    for i in range(n):
        if i % 10 == 9:
            found.append(dict(found[i - 9]))
            continue
        own = SUBJECTS[names[i % 4]].split()
        other = SUBJECTS[generator.choice(names)].split()
        words = [generator.choice(own) for _ in range(14)] + [generator.choice(other) for _ in range(6)]
        words += [f"word{generator.randrange(40)}" for _ in range(8)]
        generator.shuffle(words)
        found.append({"title": " ".join(words[:4]), "body": " ".join(words[4:])})
    return found


def subject_of(i):
    """The subject that document i has most words of."""
    return list(SUBJECTS)[(i - 9 if i % 10 == 9 else i) % 4]


def small_pool(n=120, **options):
    return Pool.from_documents([Document(f"d{i}", zones) for i, zones in enumerate(documents(n))], **options)


def teach(session, topic, n, person="", subject="strike"):
    """Answer n questions as one who knows the subjects."""
    for _ in range(n):
        question = session.next(topic, person)
        if question is None:
            return
        answer = "yes" if subject_of(question.position) == subject else "no"
        session.answer(topic, question.position, answer, person)


def teach_until_killed(folder, pool, seed, pipe):
    """Answer, undo and set keywords, and write to a pipe how many lines have been acknowledged after each."""
    generator = random.Random(seed)
    session = Session.open(folder, pool)
    while True:
        kind = generator.random()
        if kind < 0.15:
            session.undo("anna")
        elif kind < 0.3:
            keyword = generator.choice(["union", "wheat", "gold"])
            session.set_keyword("strike", keyword, generator.random() < 0.5, "anna")
        else:
            answer = generator.choice(["yes", "no", "skip"])
            session.answer("strike", generator.randrange(len(pool)), answer, "anna", "list")
        os.write(pipe, b"%d\n" % len(session.journal.lines))

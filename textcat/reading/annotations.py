"""Read the exports of annotation tools: Argilla, doccano, Label Studio and Prodigy.

`plain_record` converts such a record to the usual form: a text, a field of topics and ``labelled_for``. If several
persons labelled a document, it has the topics that more than half of them gave. If the settings ask for labels, records
that nobody labelled, or on which persons do not agree, are left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textcat.base.frames import is_missing
from textcat.reading.columns import usual_name
from textcat.reading.faults import FaultKind, UnreadableError
from textcat.reading.labels import Labels, labels_in

ANSWERS = ("accept", "reject", "ignore")  # answers of Prodigy
# Each of these programs writes at least one of these fields.
_FIELDS = frozenset({"annotation", "annotations", "answer", "completions", "responses", "suggestions"})
_Answers = dict[str, list[Any]]  # for each question, the answers of all persons


def plain_record(fields: Mapping[str, Any], topics_field: str, is_default: bool, labelled: bool) -> Mapping[str, Any]:
    """Convert a record exported by an annotation tool to the form of other records; return other records unchanged.

    Parameters
    ----------
    fields : mapping of str to object
    topics_field : str
        The field of topics, also in the returned record.
    is_default : bool
        Whether `topics_field` is the default; otherwise it may select one of several questions.
    labelled : bool
        Whether labels are read, not only texts and ids.

    Raises
    ------
    UnreadableError
        If the record is to be left out, or if it is unclear which of its labels are topics.
    """
    if _FIELDS.isdisjoint(fields):
        return fields
    if missing := [name for name in fields if name in _FIELDS and is_missing(fields[name])]:
        fields = {**fields, **dict.fromkeys(missing)}
    asked = "" if is_default else topics_field
    record, what = fields, "questions"
    answers: _Answers = {}
    if isinstance(fields.get("data"), Mapping) and ("annotations" in fields or "completions" in fields):
        record, answers = _label_studio_answers(fields, topics_field, asked, labelled)
        what = "controls"
    elif isinstance(fields.get("fields"), Mapping) and ("responses" in fields or "suggestions" in fields):
        record, answers = _argilla_answers(fields, asked, labelled)
    elif "annotation" in fields and not fields.keys().isdisjoint(("annotation_agent", "prediction", "inputs")):
        record = _older_argilla_record(fields, topics_field, asked, labelled)
    elif labelled and asked in ("", "annotations") and fields.get("annotations") and "topics" not in fields:
        answers = _doccano_answers(fields)
    elif labelled and topics_field != "answer" and fields.get("answer") in ANSWERS:
        record = _prodigy_record(fields, topics_field, asked)
    if not answers:
        return record
    return {**record, topics_field: _majority_topics(answers[_name_of_topics(answers, asked, what)], topics_field)}


def _label_studio_answers(
    fields: Mapping[str, Any], topics_field: str, asked: str, labelled: bool
) -> tuple[dict[str, Any], _Answers]:
    """Return a task's data (the fields of a record), and by the name of each control, the choices of each person.

    There are no choices unless labels are read (`labelled`), or if `asked` (the field or control of topics) is a field
    of the data.
    """
    record = {"id": fields.get("id"), **fields["data"]}
    if not labelled:
        return record, {}
    annotations = [
        annotation
        for annotation in fields.get("annotations") or fields.get("completions") or ()
        if not annotation.get("was_cancelled")
    ]
    answers: _Answers = {}
    for number, annotation in enumerate(annotations):
        for result in annotation.get("result") or ():
            value = result.get("value") or {}
            if "choices" in value:
                of_control = answers.setdefault(str(result.get("from_name")), [[] for _ in annotations])
                of_control[number] += value["choices"]
    if asked in record and asked not in answers:
        return record, {}
    if not annotations:
        raise _left_out("Tasks without an annotation that counts are left out")
    if not any(annotation.get("result") for annotation in annotations):
        record[topics_field] = []
    return record, answers


def _argilla_answers(fields: Mapping[str, Any], asked: str, labelled: bool) -> tuple[dict[str, Any], _Answers]:
    """Return a record's fields, and by question, the response of each person; see `_label_studio_answers`."""
    record = {"id": fields.get("id"), **fields["fields"]}
    if not labelled:
        return record, {}
    responses = fields.get("responses") or {}
    if isinstance(responses, Sequence):  # responses by person, as in older versions
        of_question: _Answers = {}
        for response in responses:
            for question, answer in (response.get("values") or {}).items():
                of_question.setdefault(question, []).append({"status": response.get("status"), **answer})
        responses = of_question
    counted = {
        question: [answer.get("value") for answer in answers if answer.get("status") in (None, "submitted")]
        for question, answers in responses.items()
    }
    counted = {question: answers for question, answers in counted.items() if answers}
    if asked in record and asked not in counted:
        return record, {}
    if not counted:
        raise _left_out("Records without a response that was submitted are left out, also if they have suggestions")
    return record, counted


def _older_argilla_record(
    fields: Mapping[str, Any], topics_field: str, asked: str, labelled: bool
) -> Mapping[str, Any]:
    inputs = fields.get("inputs")
    record = {**(inputs if isinstance(inputs, Mapping) else {}), **fields}
    if record.get("text") is None and isinstance(inputs, Mapping):
        record.pop("text", None)
        record |= inputs
    if not labelled or (asked and asked in record):
        return record
    if record["annotation"] is None or record.get("status") == "Discarded":
        raise _left_out("Records that were discarded, or have no annotation, are left out")
    return {**record, topics_field: record["annotation"]}


def _doccano_answers(fields: Mapping[str, Any]) -> _Answers:
    """Return {"annotations": the labels that each person gave}; {} if this is an ordinary field without labels."""
    by_person: dict[Any, list[Any]] = {}
    for annotation in fields["annotations"]:
        if not isinstance(annotation, Mapping) or not isinstance(annotation.get("label"), str | int):
            return {}
        by_person.setdefault(annotation.get("user"), []).append(annotation["label"])
    return {"annotations": [*by_person.values()]}


def _prodigy_record(fields: Mapping[str, Any], topics_field: str, asked: str) -> Mapping[str, Any]:
    field = asked or next((name for name in (topics_field, "accept", "label") if name in fields), "")
    if field not in fields:
        return fields
    is_choice = field == "accept"
    labels = labels_in(fields[field], field)
    if is_choice and fields["answer"] == "reject":
        raise _left_out("Choices that were rejected are left out")
    judged = prodigy_labels(labels, fields["answer"])
    if is_choice:
        options = [
            option["id"] for option in fields.get("options") or () if isinstance(option, Mapping) and "id" in option
        ]
        judged = Labels(labels.topics, labels_in(options, field).topics if options else None)
    return {**fields, topics_field: list(judged.topics), "labelled_for": judged.labelled_for}


def prodigy_labels(labels: Labels, answer: object) -> Labels:
    """Return a document's labels by an answer in Prodigy; `labels` are those that the question is about.

    The answer "reject" makes the document a negative example of the topic, and leaves other topics unjudged.
    UnreadableError is raised if the record was ignored. An answer that Prodigy does not have changes nothing.
    """
    if answer not in ANSWERS:
        return labels
    if answer == "ignore":
        raise _left_out("Records whose answer is 'ignore' are left out")
    return Labels(labels.topics if answer == "accept" else (), labels.topics)


def _name_of_topics(answers: _Answers, asked: str, what: str) -> str:
    """Return the control or question that has the topics: `asked`, the one with a usual name, or the only one.

    `what` names them in the error that is raised if it is unclear which one is meant.
    """
    if asked in answers:
        return asked
    usual = usual_name(answers, "topics")
    if len(answers) > 1 and not usual:
        names = ", ".join(map(repr, answers))
        raise UnreadableError(f"has answers to several {what} ({names}): name the one of topics with --topics-field")
    return usual or next(iter(answers))


def _majority_topics(values: Iterable[Any], field: str) -> list[str]:
    """Return the topics that more than half of several persons gave; raise UnreadableError if they do not agree.

    They do not agree if exactly half gave a topic, or if half or more gave topics, but no topic was given by more than
    half.
    """
    topics_of_persons = [labels_in(value, field).topics for value in values]
    counts = Counter(topic for topics in topics_of_persons for topic in topics)
    agreed = [topic for topic, count in counts.items() if 2 * count > len(topics_of_persons)]
    none_agreed = not agreed and 2 * sum(not topics for topics in topics_of_persons) <= len(topics_of_persons)
    if topics_of_persons and (none_agreed or any(2 * count == len(topics_of_persons) for count in counts.values())):
        raise _left_out("Records about which persons do not agree, half of them or more, are left out")
    return agreed


def _left_out(sentence: str) -> UnreadableError:
    return UnreadableError("is left out", FaultKind.LEFT_OUT, sentence)

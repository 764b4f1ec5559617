"""Read tables of pandas and polars without importing these libraries; return results as tables of the same library."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from textcat.base.errors import TextcatError, did_you_mean, first_of

_LIBRARIES = ("pandas", "polars")
_MISSING = ("NAType", "NaTType")  # types of pandas' markers of missing data
_SHOWN, _COLUMNS_SHOWN = 5, 20  # maximum number of rows and columns that a message names
_EMPTY_TEXT = "a text, which may be empty"


def is_boolean(value: Any) -> bool:
    """Return whether a value is True or False, of Python or of numpy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # the last two are numpy's


def is_missing(value: Any) -> bool:
    """Return True if a value marks missing data: None, NaN, or pandas' NaT or NA."""
    if value is None or isinstance(value, str):
        return value is None
    return type(value).__name__ in _MISSING or (isinstance(value, Real) and bool(value != value))


def plain_value(value: Any) -> Any:
    """Convert a value of numpy, or a column, set or other collection, to Python's number, text, list or dict.

    Missing data are None, also in a list or a dict. The list of a set is sorted.
    """
    if type(value) is not list:
        if isinstance(value, Mapping):
            return {name: _plain(member) for name, member in value.items()}
        value = _plain(value)
        if not isinstance(value, Iterable) or isinstance(value, str | bytes):
            return value
        value = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return [member if type(member) is str else _plain(member) for member in value]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # values of numpy and pandas
        value = value.tolist()
    return None if is_missing(value) else value


class Frame(NamedTuple):
    """A table (DataFrame) or a column (Series) of pandas or polars, with the same methods for both libraries."""

    data: Any  # the table or column
    library: str = ""  # its library, "pandas" or "polars"; "": another one
    is_column: bool = False  # True: a column; False: a table

    @classmethod
    def of(cls, data: Any) -> "Frame | None":
        """Wrap a table or column of pandas or polars; return None for anything else.

        TextcatError is raised for a LazyFrame, which has no rows yet, and for a table of pyarrow.
        """
        for kind in type(data).__mro__:
            library, name = kind.__module__.partition(".")[0], kind.__name__
            if library in _LIBRARIES and name in ("DataFrame", "Series"):
                return cls(data, library, name == "Series")
            if library in _LIBRARIES and name == "LazyFrame":
                raise TextcatError("A LazyFrame has no rows yet: give what its collect() returns.")
            if library == "pyarrow" and name in ("Table", "RecordBatch"):
                raise TextcatError(f"A {name} of pyarrow is no table of pandas or polars: give its to_pandas().")
        return None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [str(column) for column in self.data.columns]

    @property
    def _index(self) -> Sequence[Any]:
        """The index of a table of pandas; for any other table, the numbers of its rows, from 0."""
        index: Sequence[Any] = self.data.index if self.library == "pandas" else range(len(self.data))
        return index

    @property
    def index_name(self) -> str | None:
        """The name of a pandas table's index; None if it has no name, and for any other table."""
        return getattr(self._index, "name", None)

    @property
    def is_numbered(self) -> bool:
        """Whether the rows have no names but their numbers, from 0, as in a pandas table without an explicit index."""
        index: Any = self._index
        if self.library != "pandas":
            return True
        return type(index).__name__ == "RangeIndex" and (index.start, index.step, index.name) == (0, 1, None)

    @property
    def row_names(self) -> list[str]:
        """The names of the rows, which are all different: values of the index as `str` writes them.

        A value that several rows have is followed by the row's number, from 0. The rows of a table without an index,
        such as one of polars, have these numbers as names.
        """
        names = [str(value) for value in self._index]
        times = Counter(names)
        different = [f"{name} (row {row})" if times[name] > 1 else name for row, name in enumerate(names)]
        if len({*different}) == len(names):
            return different
        # because two different values may look alike as text
        return [f"{name} (row {row})" for row, name in enumerate(names)]

    def check(self, names: Iterable[str], argument: str = "text") -> None:
        """Raise TextcatError if the table lacks one of the named columns, or has several columns of that name.

        The message tells the user to name other columns by the argument called `argument`.
        """
        columns = self.columns
        for name in names:
            if name not in columns:
                listed = first_of(columns, _COLUMNS_SHOWN)
                known = f"It has {listed or 'none'}: name the ones to take by {argument}=."
                if not all(isinstance(column, str) for column in self.data.columns):
                    known = (
                        f"It has {listed}, which are not all called by texts: rename them, as by columns=['text', …]."
                    )
                raise TextcatError(f"The table has no column {name!r}.{did_you_mean(name, columns)} {known}")
            if columns.count(name) > 1:
                raise TextcatError(f"The table has {columns.count(name)} columns {name!r}: give each its own name.")

    def rows(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over the rows: for each row, a tuple of its values in the named columns."""
        of_name = dict(zip(self.columns, self.data.columns, strict=True))
        return zip(*(self.data[of_name[name]] for name in names), strict=True) if names else iter([()] * len(self.data))

    def records(self, text: str | Sequence[str] | None) -> Iterator[Any]:
        """Return an iterator over texts: over the values of a column or, for a table, over a dict of texts per row.

        A dict has the row's values in the columns that `text_columns` returns. TextcatError is raised if a column is
        missing, or if a row has no text.
        """
        if self.is_column:
            self._refuse_missing([is_missing(value) for value in self.data], "text", (), _EMPTY_TEXT)
            return iter(self.data)
        names = self.text_columns(text)
        return (dict(zip(names, row, strict=True)) for row in self.rows(names))

    def text_columns(self, text: str | Sequence[str] | None) -> list[str]:
        """Return the names of the columns that hold texts: those that `text` names, and no others.

        If `text` is None, they are those of "text", "title", "body" and "zones" that the table has. TextcatError is
        raised if a named column is missing, or if a row has no value in any of the columns.
        """
        columns, names = self.columns, [*named_columns(text)]
        if not names:
            names = [name for name in ("text", "title", "body", "zones") if name in columns] or ["text"]
        self.check(names)
        self._refuse_missing([all(map(is_missing, row)) for row in self.rows(names)], "text", names, _EMPTY_TEXT)
        return names

    def check_topics(self, topics: str | Sequence[str]) -> None:
        """Raise TextcatError if a column of topics is missing, or a row has no value in it.

        If `topics` is one name, a row's topics are its value in that column. If `topics` is a list of names, each of
        these columns is a topic, and TextcatError is raised if one holds anything but 0 and 1, too.
        """
        names = [topics] if isinstance(topics, str) else [*topics]
        self.check(names, "topics")
        filled = "'', which is no topic" if isinstance(topics, str) else "0 or 1"
        self._refuse_missing([any(map(is_missing, row)) for row in self.rows(names)], "topics", names, filled)
        if isinstance(topics, str):
            return
        for number, row in enumerate(self.rows(names)):
            for name, value in zip(names, row, strict=True):
                if not ((isinstance(value, Real) or is_boolean(value)) and value in (0, 1)):
                    raise TextcatError(
                        f"Row {self._shown(number)} of the table has {value!r:.60} in the column {name!r}: give 1 in a "
                        "column of a topic if the document has it, else 0; or, if the column holds the names of "
                        f"topics, topics={name!r}."
                    )

    def _refuse_missing(self, missing: list[bool], what: str, names: Sequence[str], filled: str) -> None:
        if not any(missing):
            return
        numbers = [number for number, is_one in enumerate(missing) if is_one]
        have, rows = ("has", "row") if len(numbers) == 1 else ("have", "rows")
        which = f"{rows} {first_of([self._shown(number) for number in numbers[: _SHOWN + 1]], _SHOWN)}"
        which += ", by the index" if self.library == "pandas" else ", counted from 0"
        where = f" in {' or '.join(map(repr, names))}" if names else ""
        by = ""
        if len(names) <= 1:
            drop, prefix = ("drop_nulls", "") if self.library == "polars" else ("dropna", "subset=")
            by = f" by {drop}({f'{prefix}{[*names]!r}' if names else ''})"
        raise TextcatError(
            f"{len(numbers):,} of the {len(missing):,} rows {have} no {what}{where} ({which}): "
            f"leave them out{by}, or fill in {filled}."
        )

    def _shown(self, number: int) -> str:
        value = self._index[number]
        return f"{value!r:.60}" if isinstance(value, str) else f"{value!s:.60}"

    def answer(self, values: Any, topics: Sequence[str], rows: Sequence[int] | None = None) -> Any:
        """Return values as a table of the same library as this one, with a row per document and a column per topic.

        In pandas, the rows keep their index. `rows` has the numbers of the rows that the documents came from; None: all
        rows.
        """
        if self.library == "polars":
            return self._module().DataFrame(values, schema=[*topics], orient="row")
        index = self.data.index if rows is None else self.data.index[rows]
        return self._module().DataFrame(values, index=index, columns=[*topics])

    def long_answer(self, columns: dict[str, list[Any]], counts: Sequence[int]) -> Any:
        """Return a table of the same library as this one, in which a document may have several rows.

        `columns` has the values of each column by its name, and `counts` the number of rows of each document. In
        pandas, each row has the index of its document. In polars, which has no index, a column "index" has the number
        of the document in this table, counted from 0.
        """
        if self.library == "polars":
            numbers = [number for number, count in enumerate(counts) for _ in range(count)]
            types = self._module()
            kinds = {"index": types.Int64, "topic": types.String, "name": types.String}
            kinds |= {"score": types.Float64, "probability": types.Float64, "status": types.String}
            given = {"index": numbers, **columns}
            return types.DataFrame(given, schema={name: kinds[name] for name in given})
        kinds = {"score": "float64", "probability": "float64"}
        if not any(counts):  # columns without a value would be numbers
            kinds |= dict.fromkeys(columns.keys() - kinds, str)
        return self._module().DataFrame(columns, index=self.data.index.repeat(counts)).astype(kinds)

    def _module(self) -> Any:
        return sys.modules[self.library]


def named_columns(text: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in an argument that names one column or several; () if it is None.

    TextcatError is raised if it is an empty list, or has a value that is not a name.
    """
    if text is None:
        return ()
    names = (text,) if isinstance(text, str) else tuple(text) if isinstance(text, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise TextcatError(
            f"Texts cannot be in the columns {text!r:.60}: give one name or a list of names, which "
            "are texts; rename columns called otherwise."
        )
    return names


def is_table(source: Any) -> bool:
    """Return True if `source` is a table or column of pandas or polars, or another object with `columns`."""
    return Frame.of(source) is not None or hasattr(source, "columns")


def empty_frame(n_rows: int) -> Frame:
    """Return a pandas table of `n_rows` rows and no columns; raise TextcatError if pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise TextcatError("A DataFrame needs pandas: pip install pandas.") from error
    return Frame(pandas.DataFrame(index=range(n_rows)), "pandas")


def answer_in_kind(documents: Any, values: Any, topics: Sequence[str]) -> Any:
    """Return values as a table of the same library as the documents, with a row per document and a column per topic.

    If the documents are not a table or column of pandas or polars, `values` are returned unchanged.
    """
    frame = Frame.of(documents)
    return values if frame is None else frame.answer(values, topics)

"""A draft of the features file, from a public sample or from nothing but names and types. Never from reference rows."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpoutlier._validate import one_of, parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import DATE, LONGEST_LEVEL, NUMBER, text_of
from dpoutlier.features.domain import LONGEST_NAME, check_range
from dpoutlier.tables import convert

MAX_NUMBERS, MAX_TEXTS = 10, 30
"""More distinct numbers become a range instead of levels; more distinct texts count as free text."""
MANY_TEXTS, OFTEN = 300, 20
"""The exception: up to MANY_TEXTS texts are levels if each occurs OFTEN times on average."""
NUMBERS_AT_LEAST = 0.95
"""A text column is a column of numbers if at least this share of its values are numbers; the others are missing."""
ABSENT = {"na", "n/a", "nan", "null", "none", "?", "-", ".", "missing", "unknown"}
BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

HEAD = """\
# A draft of the features, to be read and corrected by someone who knows what they mean.
#
# Everything in this file is published with every model that is fitted with it. Ranges and levels must come from knowledge of
# the features or from a public sample, NEVER from the reference rows: the smallest and the largest value that occur there are
# two people's values, and a rare level is one person's. A draft from reference rows breaks the guarantee.
#
"""
FROM_SAMPLE = """\
# Drafted from {source}, which was said to be public. Values outside a range are clipped, so look at each: is this what
# the feature may be, and not only what it was in the sample? A line that starts with # is not a feature yet.
"""
FROM_SCHEMA = """\
# Drafted from the column names of {source} alone: no value was read. Write the range or the levels of each feature, and take
# away the # before it:
#   age = [0, 120]                                             a number
#   sex = {{levels = ["f", "m"]}}                                levels; others have a level "other" of their own
#   stage = {{levels = [1, 2, 3, 4], ordered = true}}            levels in an order
#   income = {{outer = [0, 1e6], share = 0.1}}                   a range to be estimated with a share of epsilon
"""
NO_DATE = "dates and times cannot be features: convert them to a number, such as days since some event"
RANGE, LEVELS = "[lower, upper]", '{levels = ["...", "..."]}'


class Drafted(NamedTuple):
    """One column in a draft.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {'number', 'text', 'truth', 'date', 'other', 'unknown'}
        What its values are.
    entry : str
        The range or the levels in TOML; if it is not active, what they might look like.
    active : bool
        Whether it is a feature of the draft. If not, its line is a comment.
    why : str
        Remark behind the entry.
    """

    name: str
    kind: str
    entry: str
    active: bool
    why: str


def draft(table: pa.Table | pa.Schema, source: str = "a table", *, missing: str = "seen") -> str:
    """Draft a features file from a *public* sample, or from a schema.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.Schema
        A public sample, never the reference rows; or a schema, which has no values.
    source : str, default='a table'
        What the text calls the sample.
    missing : {'seen', 'all', 'none'}, default='seen'
        Which features have a cell for missing values: those with missing values in the sample, all, or none.

    Returns
    -------
    str
        Text of a features file in TOML, to be read and corrected. ``Bounds.from_file`` reads it.

    Raises
    ------
    InvalidParameterError
        If ``table`` is another object, if it has no columns or two of the same name, or if ``missing`` is something else.

    See Also
    --------
    drafted : The same as data, column by column.
    """
    return to_toml(drafted(table, missing=missing), source, from_schema=isinstance(table, pa.Schema))


def drafted(table: pa.Table | pa.Schema, *, missing: str = "seen") -> list[Drafted]:
    """What a draft says of each column of a *public* table, or of a schema, which has no values.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.Schema
        A public sample, never the reference rows; or a schema.
    missing : {'seen', 'all', 'none'}, default='seen'
        Which features have a cell for missing values: those with missing values in the sample, all, or none.

    Returns
    -------
    list of Drafted
        One for each column, in their order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [line.entry for line in drafted(pa.table({"age": [18.5, 42.0, 90.1], "ill": [True, False, None]}))]
    ['[10, 100]', '{levels = [false, true], other = false, missing = "cell"}']
    """
    one_of(("seen", "all", "none"), missing=missing)
    if not isinstance(table, pa.Table | pa.Schema):
        raise parameter_error("table", "a pyarrow.Table or pyarrow.Schema", type(table).__name__)
    schema = table if isinstance(table, pa.Schema) else table.schema
    names = list(schema.names)
    if not names or len(set(names)) < len(names):
        raise parameter_error("the table", "one with columns whose names differ", names[:10])
    if isinstance(table, pa.Schema):
        return [_checked(_template(name, schema.field(j).type, missing)) for j, name in enumerate(names)]
    return [_checked(_column(name, table.column(j), missing)) for j, name in enumerate(names)]


def to_toml(lines: Iterable[Drafted], source: str, *, from_schema: bool) -> str:
    """The draft as the text of a file."""
    head = HEAD + (FROM_SCHEMA if from_schema else FROM_SAMPLE).format(source=_shown(source))
    return head + "\n[features]\n" + "".join(f"{_line(line)}\n" for line in lines)


def _line(line: Drafted) -> str:
    written = f"{'' if line.active else '# '}{_key(line.name)} = {line.entry}"
    return f"{written:<40}  # {line.why}" if line.why else written


# From a schema ------------------------------------------------------------------------------------------------------------


def _template(name: str, kind: pa.DataType, missing: str) -> Drafted:
    known, cell = _kind(kind), _cell(missing, gaps=0)
    entry = _levels(['"..."', '"..."'], cell=cell) if known == "text" else _range("lower", "upper", cell)
    if known == "truth":
        entry = _levels(["false", "true"], "other = false", cell=cell)
    why = {"date": NO_DATE, "other": f"columns of type {_shown(str(kind))} cannot be features"}.get(known, "")
    return Drafted(name, known, entry, active=False, why=why)


def _kind(kind: pa.DataType) -> str:
    of = pa.types
    if of.is_dictionary(kind):
        return _kind(kind.value_type)
    if of.is_null(kind):
        return "unknown"
    if of.is_boolean(kind):
        return "truth"
    if of.is_temporal(kind):
        return "date"
    if of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind):
        return "number"
    texts = (of.is_string, of.is_large_string, of.is_binary, of.is_large_binary, of.is_fixed_size_binary)
    if any(test(kind) for test in texts) or str(kind) in {"string_view", "binary_view"}:
        return "text"
    return "other"


# From a sample ------------------------------------------------------------------------------------------------------------


def _column(name: str, column: pa.ChunkedArray, missing: str) -> Drafted:
    kind = _kind(column.type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "date":
        return Drafted(name, kind, RANGE, active=False, why=NO_DATE)
    if kind == "other":
        why = f"columns of type {_shown(str(column.type))} cannot be features"
        return Drafted(name, kind, RANGE, active=False, why=why)
    if column.null_count == len(column):
        return Drafted(name, kind, LEVELS if kind == "text" else RANGE, active=False, why="no value in the sample")
    if kind == "truth":
        entry = _levels(["false", "true"], "other = false", cell=_cell(missing, column.null_count))
        return Drafted(name, kind, entry, active=True, why="")
    if kind == "number":
        (values,) = convert.columns(pa.table([column], ["x"]))
        known = values[~np.isnan(values)]
        found, counts = np.unique(known, return_counts=True)
        return _of_numbers(name, found, counts, missing, gaps=len(values) - len(known), no_numbers=0)
    return _of_texts(name, *_texts(column), missing)


def _texts(column: pa.ChunkedArray) -> tuple[Counter[str], int]:
    """How often each text is there, as the fit will know it, and how many are missing."""
    encoded = pc.value_counts(column.cast(pa.large_binary()))
    found, gaps = Counter[str](), 0
    for value, count in zip(encoded.field(0).to_pylist(), encoded.field(1).to_pylist(), strict=True):
        text = text_of(value)
        if text is None:
            gaps += count
        else:
            found[text] += count
    return found, gaps


def _of_texts(name: str, texts: Counter[str], gaps: int, missing: str) -> Drafted:
    total = texts.total()
    if not total:
        return Drafted(name, "text", LEVELS, active=False, why="no value in the sample")
    numbers = {text: float(text) for text in texts if NUMBER.fullmatch(text)}
    marks = sum(count for text, count in texts.items() if text.lower() in ABSENT)
    parsed = sum(texts[text] for text in numbers)
    if parsed and parsed >= NUMBERS_AT_LEAST * (total - marks):
        values = Counter[float]()
        for text, number in numbers.items():
            values[number] += texts[text]
        found = np.array(sorted(values), np.float64)
        counts = np.array([values[number] for number in sorted(values)], np.int64)
        return _of_numbers(name, found, counts, missing, gaps=gaps, no_numbers=total - parsed)
    if all(DATE.fullmatch(text) for text in texts):
        return Drafted(name, "date", RANGE, active=False, why=NO_DATE)
    readable = all(text.isprintable() and len(text) <= LONGEST_LEVEL for text in texts)
    few = len(texts) <= MAX_TEXTS or (len(texts) <= MANY_TEXTS and total >= OFTEN * len(texts))
    if not few or not readable or (2 * len(texts) > total > 3):
        why = f"{_many(len(texts), 'different text')} in {_many(total, 'value')}: an identifier or free text, left out"
        return Drafted(name, "text", LEVELS, active=False, why=f"{why}. If it identifies people: fit --person")
    unknown = sorted(text for text in texts if text.lower() in ABSENT)
    levels, cell = [_quoted(text) for text in sorted(texts)], _cell(missing, gaps)
    if sorted(text.lower() for text in texts) == ["false", "true"]:
        return Drafted(name, "truth", _levels(levels, "other = false", cell=cell), active=True, why="")
    if len(texts) == 1:
        why = "the same in the whole sample: which other values are possible?"
        return Drafted(name, "text", _levels(levels, cell=cell), active=False, why=why)
    hint = f"; if {' or '.join(unknown)} means 'unknown', remove it; it then counts as 'other'" if unknown else ""
    return Drafted(name, "text", _levels(levels, cell=cell), active=True, why=_why_levels(len(levels)) + hint)


def _of_numbers(
    name: str, found: NDArray[np.float64], counts: NDArray[np.int64], missing: str, *, gaps: int, no_numbers: int
) -> Drafted:
    """``found``: the different numbers, in order; ``no_numbers``: how many values are text, and missing where a number is meant."""
    finite = np.isfinite(found)
    found, counts = found[finite], counts[finite]
    if not len(found):
        return Drafted(name, "number", RANGE, active=False, why="no number in the sample")
    total, whole = int(counts.sum()), bool((found == np.floor(found)).all() and abs(found).max() < 2**53)
    low, high = float(found[0]), float(found[-1])
    if len(found) == 1:
        why = f"{_number(low)} in the whole sample: which other values are possible?"
        return Drafted(name, "number", RANGE, active=False, why=why)
    if whole and len(found) == total == high - low + 1 and total > MAX_NUMBERS:
        why = f"every whole number from {_number(low)} to {_number(high)} once: probably a row number, so left out"
        return Drafted(name, "number", RANGE, active=False, why=f"{why}. If it identifies people: fit --person")
    if whole and not no_numbers and len(found) <= MAX_NUMBERS and total >= 2 * len(found):
        entry = _levels(map(_number, found), cell=_cell(missing, gaps))
        return Drafted(name, "number", entry, active=True, why=_why_levels(len(found)))
    why = f"{_number(low)} to {_number(high)} in the sample" if whole else f"{low:.6g} to {high:.6g} in the sample"
    if no_numbers:
        verb = "is not a number and counts" if no_numbers == 1 else "are not numbers and count"
        why += f"; {_many(no_numbers, 'value')} {verb} as missing"
    pair = _generous(low, high, whole=whole)
    if pair is None:
        return Drafted(name, "number", RANGE, active=False, why=f"{why}: too wide or too narrow to round")
    entry = _range(_number(pair[0]), _number(pair[1]), _cell(missing, gaps + no_numbers))
    return Drafted(name, "number", entry, active=True, why=why)


def _why_levels(n_levels: int) -> str:
    return "all that the sample contains" + ("; if they have an order: ordered = true" if n_levels > 2 else "")


def _generous(low: float, high: float, *, whole: bool) -> tuple[float, float] | None:
    """A wider range with round ends: a tenth more on both sides, and on to the next multiple of 1, 2 or 5 times a power of ten.

    >>> _generous(18, 90, whole=True), _generous(0.013, 0.4, whole=False), _generous(-3, 3, whole=False)
    ((10.0, 100.0), (0.0, 0.45), (-4.0, 4.0))
    """
    first, last = Fraction(low), Fraction(high)
    more = (last - first) / 10
    step = Fraction(10) ** (math.floor(math.log10(more)) if more > 1e-300 else -300)
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor >= more)
    step = max(step, Fraction(1)) if whole else step
    lower, upper = math.floor((first - more) / step) * step, math.ceil((last + more) / step) * step
    if low >= 0:
        lower = max(lower, Fraction(0))  # what is never negative in the sample hardly ever is
    if high <= 0:
        upper = min(upper, Fraction(0))
    try:
        pair = float(lower), float(upper)
        check_range("", *pair)
    except (OverflowError, InvalidParameterError):
        return None
    return pair


def _cell(missing: str, gaps: int) -> str:
    return 'missing = "cell"' if missing == "all" or (missing == "seen" and gaps) else ""


def _range(lower: str, upper: str, cell: str) -> str:
    return f"{{lower = {lower}, upper = {upper}, {cell}}}" if cell else f"[{lower}, {upper}]"


def _levels(levels: Iterable[str], *more: str, cell: str) -> str:
    return "{" + ", ".join([f"levels = [{', '.join(levels)}]", *more, *([cell] if cell else [])]) + "}"


def _checked(line: Drafted) -> Drafted:
    """Leave out a column whose name a feature cannot have."""
    if line.name.isprintable() and len(line.name) <= LONGEST_NAME:
        return line
    why = f"a feature's name must be printable text of at most {LONGEST_NAME} characters: rename the column"
    return line._replace(active=False, why=why)


# TOML ---------------------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + _shown(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _shown(text: str) -> str:
    """Text without anything that could end a line, or that TOML refuses in a string or in a comment."""
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(one: str) -> str:
    code = ord(one)
    if 0xD800 <= code < 0xE000:
        return "\ufffd"  # half of a surrogate pair is not text
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"

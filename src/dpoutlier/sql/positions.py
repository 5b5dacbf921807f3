"""The position of a number and the number of a level, in SQL: to the bit as ``features.lattice`` and ``category`` define them."""

import math
from collections.abc import Iterator

from dpoutlier.engines.sql_text import exact, literal, quoted
from dpoutlier.features.category import NO_NUMBER, TRUTH, Category, text_of
from dpoutlier.features.domain import Domain

BLANKS = r"[\t-\r\x1c-\x20\x{85}\p{Z}]+"
"""What Python strips from text, in RE2's words."""
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Text that is a finite number: an infinite one is not a level."""
NUMBERS = "U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*"
"""DuckDB's types of numbers."""
BY_TEXT = "U?HUGEINT|DECIMAL.*"


def place(feature: int) -> str:
    """The column that has a feature's position, or its level."""
    return f"p{feature}"


def values(domain: Domain) -> Iterator[str]:
    """Columns ``x``, numbers, and ``t``, texts, from those of the points; NULL is missing."""
    for j, name in enumerate(domain.labels):
        category = domain.category(j)
        if category is None:
            yield f"{_number(quoted(name))} AS x{j}"
        else:
            yield from _level_values(quoted(name), category, j)


def _number(column: str, cast: str = "CAST") -> str:
    """A column as DOUBLE: decimals and 128 bits by way of their text, as ``tables.convert.read_by_text`` has it; NULL for NaN."""
    by_text = f"regexp_full_match(typeof({column}), {literal(BY_TEXT)})"
    text = f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    return f"nullif(CASE WHEN {by_text} THEN {text} ELSE {cast}({column} AS DOUBLE) END, {exact(math.nan)})"


def _level_values(column: str, category: Category, j: int) -> Iterator[str]:
    is_number = f"regexp_full_match(typeof({column}), {literal(NUMBERS)})"
    pattern = literal(f"^{BLANKS}|{BLANKS}$")
    text = f"nullif(regexp_replace(CAST({column} AS VARCHAR), {pattern}, '', 'g'), '')"
    parsed = (
        f" WHEN regexp_full_match({text}, {literal(NUMBER)}) THEN TRY_CAST({text} AS DOUBLE)"
        if category.numeric
        else ""
    )
    number = _number(column, "TRY_CAST")
    is_truth = f"typeof({column}) = 'BOOLEAN'"
    truth = _truth(text, category)
    of_truth = f" WHEN {is_truth} THEN TRY_CAST({truth} AS DOUBLE)" if category.numeric else ""
    no_number = f" WHEN lower({text}) IN ({', '.join(map(literal, sorted(NO_NUMBER)))}) THEN NULL" * category.numeric
    yield f"CASE WHEN {is_number} THEN {number}{of_truth}{parsed} END AS x{j}"
    yield f"CASE WHEN {is_number} THEN NULL WHEN {is_truth} THEN {truth}{no_number} ELSE {text} END AS t{j}"


def _truth(text: str, category: Category) -> str:
    """The text by which a truth value is known."""
    known = [
        next((level for level in TRUTH[value] if level in category.levels), TRUTH[value][0]) for value in (True, False)
    ]
    return f"CASE {text} WHEN 'true' THEN {literal(known[0])} WHEN 'false' THEN {literal(known[1])} END"


def places(domain: Domain) -> Iterator[str]:
    """The place of each feature, from the columns of ``values``."""
    for j in range(domain.n_features):
        category = domain.category(j)
        made = _position(domain, j) if category is None else _level(category, j, has_cell=domain.has_missing_cell(j))
        yield f"{made} AS {place(j)}"


def _position(domain: Domain, j: int) -> str:
    """As ``features.lattice`` defines it. A missing value without a cell has no position: its point gets no score."""
    line = domain.lines[j]
    lower, upper, scale, last = map(exact, (line.lower, line.upper, line.scale, line.last))
    found = f"CAST(floor(least((least(greatest(x{j}, {lower}), {upper}) - {lower}) * {scale}, {last})) AS BIGINT)"
    return f"CASE WHEN x{j} IS NULL THEN {line.missing if domain.has_missing_cell(j) else 'NULL'} ELSE {found} END"


def _level(category: Category, j: int, *, has_cell: bool) -> str:
    missing = str(len(category.names)) if has_cell else "NULL"
    whens = " ".join(
        f"WHEN {_is_level(category, level, j)} THEN {number}" for number, level in enumerate(category.levels)
    )
    other = str(len(category.levels)) if category.other else missing
    return f"CASE WHEN x{j} IS NULL AND t{j} IS NULL THEN {missing} {whens} ELSE {other} END"


def _is_level(category: Category, level: str, j: int) -> str:
    """Compare numbers as numbers, however their type writes them. Compare text as text, unless the levels are numbers."""
    by_number = f"x{j} = {exact(float(level))}" if category.numeric or _writes_number(level) else ""
    by_text = "" if category.numeric else f"t{j} = {literal(level)}"
    return " OR ".join(filter(None, (by_text, by_number)))


def _writes_number(level: str) -> bool:
    """Whether this text is how a number is written as a level."""
    try:
        return text_of(float(level)) == level
    except ValueError:
        return False


def complete(domain: Domain) -> str:
    """A condition: every feature without a cell for missing values has a value."""
    needed = [place(j) for j in range(domain.n_features) if not domain.has_missing_cell(j)]
    return " AND ".join(f"{column} IS NOT NULL" for column in needed) or "TRUE"


def outside(domain: Domain) -> str:
    """Whether some number lies outside its bounds, as ``Domain.outside`` defines it, from the columns of the points."""
    found = [
        f"{_number(quoted(name))} NOT BETWEEN {exact(domain.lower[j])} AND {exact(domain.upper[j])}"
        for j, name in enumerate(domain.labels)
        if domain.category(j) is None
    ]
    return f"coalesce({' OR '.join(found)}, FALSE)" if found else "FALSE"

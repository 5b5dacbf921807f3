"""The SQL that joins points with a table of terms."""

from collections import Counter
from collections.abc import Iterable

from dpoutlier._validate import parameter_error
from dpoutlier.engines.sql_text import exact, literal, quoted
from dpoutlier.features.domain import Domain
from dpoutlier.model.model import Model
from dpoutlier.scoring.log_counts import TERM_UNIT
from dpoutlier.sql.cells import cell
from dpoutlier.sql.positions import complete, outside, places, values

ADDED = ("dpoutlier_row", "outside_bounds", "outlier_score", "score_samples", "prediction")
"""Columns that the query adds to those of the points."""

HEAD = """\
-- Scores of a dpoutlier model: equal to its outlier_scores to the bit. Written for DuckDB.
-- Features are columns of numbers; where they have levels, of numbers or text. A row that misses a value for which the model has
-- no cell gets NULL for a score. Output: the columns of the points, and
-- {added}.
"""


def check_names(domain: Domain, table: str) -> None:
    """Refuse names that SQL cannot tell apart, or that the query needs for itself."""
    if not isinstance(table, str) or not table or not table.isprintable() or table.lower().startswith("dpoutlier"):
        raise parameter_error("table", "the name of a table, printable and not starting with 'dpoutlier'", table)
    folded = Counter(name.casefold() for name in domain.labels)
    for name in domain.labels:
        if not name or name.casefold() in ADDED:
            raise parameter_error(
                "a feature's name", f"neither empty nor one of {', '.join(ADDED)}", name, "The SQL adds those."
            )
        if folded[name.casefold()] > 1:
            raise parameter_error(
                "features' names", "different in more than their case", name, "SQL could not tell them apart."
            )


def score_query(model: Model, terms: str, table: str) -> str:
    """One SELECT over ``table``; ``terms`` is the path of the Parquet file."""
    domain, members = model.domain, model.partition.members
    columns = [f"{outside(domain)} AS outside_bounds", "s.outlier_score", "-s.outlier_score AS score_samples"]
    if model.threshold is not None:  # a tie is an inlier
        inlier = f"s.outlier_score <= {exact(model.threshold)}"
        columns.append(f"CASE WHEN {inlier} THEN 1 WHEN NOT {inlier} THEN -1 END AS prediction")
    added = ", ".join(ADDED[: 1 + len(columns)])
    # All names, texts and numbers in it come from ``text``.
    return f"""{HEAD.format(added=added)}WITH dpoutlier_points AS MATERIALIZED (
  SELECT row_number() OVER () AS dpoutlier_row, * FROM {quoted(table)}
), dpoutlier_values AS (
  SELECT dpoutlier_row,
    {_lines(values(domain))}
  FROM dpoutlier_points
), dpoutlier_places AS (
  SELECT dpoutlier_row,
    {_lines(places(domain))}
  FROM dpoutlier_values
), dpoutlier_cells AS (
  SELECT dpoutlier_row, unnest([
    {_lines(cell(member, domain) for member in members)}
  ]) AS cell
  FROM dpoutlier_places
  WHERE {complete(domain)}
), dpoutlier_scores AS (
  SELECT c.dpoutlier_row,
    {exact(0)} - CAST(CAST(sum(t.term) AS BIGINT) AS DOUBLE) / {exact(len(members) * TERM_UNIT)} AS outlier_score
  FROM dpoutlier_cells AS c JOIN read_parquet({literal(terms)}) AS t ON t.cell = c.cell
  GROUP BY c.dpoutlier_row
)
SELECT p.*,
    {_lines(columns)}
FROM dpoutlier_points AS p LEFT JOIN dpoutlier_scores AS s ON s.dpoutlier_row = p.dpoutlier_row
ORDER BY p.dpoutlier_row"""  # noqa: S608


def _lines(parts: Iterable[str]) -> str:
    return ",\n    ".join(parts)

"""Write a score table and its SQL."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpoutlier._atomic import check_output, write_aside
from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError, SecretError
from dpoutlier.model.model import Model
from dpoutlier.model.release_id import release_of
from dpoutlier.scoring.log_counts import TERM_UNIT, LogCounts
from dpoutlier.sql.query import check_names, score_query


def export_scores(
    model: Model, path: Path, sql: Path | None, *, table: str, overwrite: bool = False, secret: bool = False
) -> str:
    """Write the terms to ``path`` and the SQL that joins them to ``sql``, if that is wanted. Returns the SQL."""
    scorer = model.scorer
    if not isinstance(scorer, LogCounts):
        raise InvalidParameterError(
            f"a {model.partition.kind} has no score table. The order of the walk depends on where the point lies inside its cell, "
            "so the cell alone does not determine the score. Fit a DPForest or DPMarginals to score in SQL."
        )
    if not model.publishable and not secret:
        raise SecretError(
            "this model is secret, and the terms are functions of its counts: a score table of it must not leave the custodian. If "
            "you are the custodian, export it with secret=True, and keep it as you keep the model."
        )
    _check_outputs(path, sql, overwrite=overwrite)
    check_names(model.domain, table)
    query = score_query(model, str(path), table)
    mode = 0o644 if model.publishable else 0o600
    made = _table(model, scorer)
    write_aside(path, lambda stream: pq.write_table(made, stream), overwrite=overwrite, mode=mode)
    if sql is not None:
        write_aside(sql, lambda stream: stream.write(f"{query};\n".encode()), overwrite=overwrite, mode=mode)
    return query


def _check_outputs(path: Path, sql: Path | None, *, overwrite: bool) -> None:
    if path.suffix.lower() != ".parquet" or not str(path).isprintable() or set("*?[") & set(str(path)):
        raise parameter_error("the score table", "a .parquet file whose path does not contain *, ? or [", str(path))
    check_output(path, overwrite=overwrite)
    if sql is not None:
        if sql.suffix.lower() != ".sql":
            raise parameter_error("sql", "a .sql file", str(sql))
        check_output(sql, overwrite=overwrite)


def _table(model: Model, scorer: LogCounts) -> pa.Table:
    members = model.partition.members
    terms = scorer.terms(model.partition, model.counts)
    numbers = np.repeat(np.arange(len(members), dtype=np.int32), [member.n_cells for member in members])
    columns = {"member": numbers, "cell": np.arange(len(terms), dtype=np.int64), "term": terms}
    return pa.table(columns).replace_schema_metadata({"dpoutlier": json.dumps(_about(model, len(members)))})


def _about(model: Model, n_members: int) -> dict[str, object]:
    """What the file says of itself."""
    statement = model.privacy_statement().to_dict()
    return {
        "format": "dpoutlier score table",
        "format_version": 1,
        "score": "minus the sum of a row's terms, divided by divisor",
        "divisor": n_members * TERM_UNIT,
        "model": release_of(model),
        "epsilon": statement["epsilon"],
        "publishable": model.publishable,
        "statement": statement,
    }

"""``dpoutlier features``: a public sample or column names in, a draft of the features file out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpoutlier.cli.progress import console, say, working
from dpoutlier.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from dpoutlier.tables.features_draft import Drafted


NOT_SAID = (
    "{path} would be read, and the draft from it is published with every model. Give --public if all its rows are public and none "
    "is a reference row; otherwise give --schema, which reads only the names of the columns."
)
OF_SAMPLE = (
    "Is {path} public? This draft now contains ranges and levels of its rows, and every model fitted with it publishes them. "
    "If these were reference rows, delete the draft and use --schema."
)
FILL_IN = "Fill in ranges and levels from knowledge or a public sample, never from the reference rows."
OF_SCHEMA = f"No row was read. {FILL_IN}"
OF_FIRST_LINE = (
    "Only the first line of {path} was read, as the names of its columns. If the names above are values of a row, the file has no "
    f"header: delete {{output}}, and put a line with names first. {FILL_IN}"
)


def features(
    sample: Annotated[Path, typer.Argument(help="A public sample, CSV or Parquet; never the reference rows.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Features file to write, .toml.")] = Path(
        "features.toml"
    ),
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Confirm that every row of the sample is public. Required unless --schema is given."
        ),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Read only the names of the columns, and draft lines to fill in.")
    ] = False,
    missing: Annotated[
        Literal["seen", "all", "none"],
        typer.Option(
            help="Which features get a cell for missing values: those with missing values in the sample, all, or none."
        ),
    ] = "seen",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing features file.")] = False,
) -> None:
    """Draft a features file from a public sample, or from column names alone.

    A features file is published with the model, so its content must never come from reference rows. Someone who knows what the
    features mean must read and correct the draft.

    Example: dpoutlier features new.csv --public -o features.toml
    """
    from dpoutlier._atomic import check_output, write_aside  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.cli.files import read_names, read_sample  # noqa: PLC0415
    from dpoutlier.tables.features_draft import drafted, to_toml  # noqa: PLC0415

    if not (public or schema):
        raise InvalidParameterError(NOT_SAID.format(path=sample))
    if output.suffix.lower() != ".toml":
        raise parameter_error("--output", "a .toml file", str(output))
    check_output(output, overwrite=force)
    with working("reading"):
        lines = drafted(read_names(sample) if schema else read_sample(sample), missing=missing)
    text = to_toml(lines, sample.name, from_schema=schema)
    write_aside(output, lambda stream: stream.write(text.encode()), overwrite=force)
    _print(lines)
    say(f"Wrote {output}")
    of_schema = OF_FIRST_LINE if sample.suffix.lower() == ".csv" else OF_SCHEMA
    warning = (of_schema if schema else OF_SAMPLE).format(path=sample, output=output)
    say(warning, style="bold yellow", stderr=True)


def _print(lines: list["Drafted"]) -> None:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table("column", "kind", "drafted as")
    for line in lines:
        said = line.entry if line.active else line.why or "to be filled in"
        table.add_row(Text(line.name), line.kind, Text(said, style="" if line.active else "dim"))
    console().print(table)

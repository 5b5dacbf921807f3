"""Run the command line in this process."""

import re

from typer.testing import CliRunner

from dpoutlier.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)

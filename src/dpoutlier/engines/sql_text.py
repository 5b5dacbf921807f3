"""Names, texts and numbers as SQL writes them, so that none of them can be taken for anything else."""


def quoted(name: str) -> str:
    """A name.

    >>> quoted('the "b" column')
    '"the ""b"" column"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text.

    >>> literal("'; --")
    "'''; --'"
    """
    return "'" + text.replace("'", "''") + "'"


def exact(number: float) -> str:
    """A double, to the last bit; as it stands a number with a point would be a decimal.

    >>> exact(0.1)
    "CAST('0.1' AS DOUBLE)"
    """
    return f"CAST('{float(number)!r}' AS DOUBLE)"

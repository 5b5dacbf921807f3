"""From numbers to tables, verdicts, figures and one page."""

from dpoutlier.exceptions import MissingExtraError

try:  # before any module of this folder does
    import jinja2  # noqa: F401
    import matplotlib as mpl  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        f"the report needs {error.name}, which comes with the extra dpoutlier[plots].", remedy="pip install '.[plots]'"
    ) from None

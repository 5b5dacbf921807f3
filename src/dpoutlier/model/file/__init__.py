"""Model files: a zip of plain arrays and a JSON manifest. Data only; see docs/model-file.md."""

from dpoutlier.model.file.store import (
    PUBLIC_SUFFIX,
    SECRET_SUFFIX,
    check_target,
    has_secret_name,
    load_model,
    save_model,
    targets,
    try_target,
)

__all__ = [
    "PUBLIC_SUFFIX",
    "SECRET_SUFFIX",
    "check_target",
    "has_secret_name",
    "load_model",
    "save_model",
    "targets",
    "try_target",
]

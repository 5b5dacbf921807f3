"""The settings of a server, from its command line. Workers read them from the environment."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Self

VARIABLE = "DPOUTLIER_SERVER"


@dataclass(frozen=True)
class Settings:
    """Everything that a worker needs to know. It contains no secrets, only the paths of the files that do."""

    models: tuple[tuple[str, str], ...]
    """Ids and paths."""
    keys: str | None = None
    """The key file; None: open to all who reach it."""
    secret_models: bool = False
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    tls_cert: str | None = None
    tls_key: str | None = None
    audit: str | None = None
    max_bytes: int = 16 << 20
    max_rows: int = 100_000
    explain_rows: int = 50
    rate: float = 0.0
    """Requests a second for each key, over all workers; 0: no limit."""
    body_seconds: float = 20.0
    header_seconds: float = 10.0
    header_bytes: int = 32 << 10
    connections: int = 1000
    """Largest number of connections of each worker."""
    stop_seconds: int = 30
    """How long a stop waits for requests that are under way."""
    shared: str | None = None
    """A private folder that the workers share: metrics and rates."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        content = json.loads(text)
        return cls(**{**content, "models": tuple((name, path) for name, path in content["models"])})

    @classmethod
    def from_environment(cls) -> Self:
        return cls.from_json(os.environ[VARIABLE])

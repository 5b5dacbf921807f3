"""``dpoutlier serve``: answer queries with models."""

from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.exceptions import InvalidParameterError, MissingExtraError


def serve(
    models: Annotated[list[str], typer.Argument(help="Model files, each as PATH or as ID=PATH.")],
    keys: Annotated[Path | None, typer.Option(help="File of keys, made with 'dpoutlier keys create'.")] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Answer everybody who can reach the server, without keys.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8765,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer.")] = 1,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate for TLS, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    audit: Annotated[
        Path | None, typer.Option(help="Audit log to append to. It records who asked what and when, never the points.")
    ] = None,
    max_bytes: Annotated[str, typer.Option(help="Largest size of a request body, such as 16MiB.")] = "16MiB",
    max_rows: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Largest number of points in a request.")
    ] = 100_000,
    explain_rows: Annotated[
        int, typer.Option(min=1, max=10_000, help="Largest number of points to explain in a request.")
    ] = 50,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests a second for each key, over all workers; 0: no limit.")
    ] = 0,
    body_seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Longest time in seconds for a body to arrive.")
    ] = 20,
    header_seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Longest time in seconds for headers to arrive.")
    ] = 10,
    connections: Annotated[
        int, typer.Option(min=1, max=100_000, help="Largest number of connections of each worker.")
    ] = 1000,
    secret_models: Annotated[
        bool, typer.Option("--secret-models", help="Also serve keyed models, whose files must stay with the custodian.")
    ] = False,
) -> None:
    """Serve models over HTTP, with a page for people. Queries have no privacy cost.

    Example: dpoutlier serve model.dpo --keys keys.json
    """
    from importlib.util import find_spec  # noqa: PLC0415 - --help must not wait for it

    from dpoutlier.cli.sizes import bytes_of  # noqa: PLC0415

    if keys is not None and open_:
        raise InvalidParameterError("--keys requires a key, --open admits everybody: give only one of them.")
    if keys is None and not open_:
        raise InvalidParameterError(
            "give --keys FILE (make keys with 'dpoutlier keys create'), or --open to answer everybody who can reach the server."
        )
    absent = [name for name in ("fastapi", "uvicorn", "httptools", "prometheus_client") if find_spec(name) is None]
    if absent:
        raise MissingExtraError(
            f"the server needs packages that are not installed ({', '.join(absent)}).",
            remedy="pip install 'dpoutlier[server]', or '.[server]' where its source is.",
        )
    from dpoutlier.server.models import named_models  # noqa: PLC0415
    from dpoutlier.server.run import serve as run  # noqa: PLC0415
    from dpoutlier.server.settings import Settings  # noqa: PLC0415

    run(
        Settings(
            models=named_models(models),
            keys=None if keys is None else str(keys.absolute()),
            secret_models=secret_models,
            host=host,
            port=port,
            workers=workers,
            tls_cert=None if tls_cert is None else str(tls_cert.absolute()),
            tls_key=None if tls_key is None else str(tls_key.absolute()),
            audit=None if audit is None else str(audit.absolute()),
            max_bytes=bytes_of("--max-bytes", max_bytes),
            max_rows=max_rows,
            explain_rows=explain_rows,
            rate=rate,
            body_seconds=body_seconds,
            header_seconds=header_seconds,
            connections=connections,
        )
    )

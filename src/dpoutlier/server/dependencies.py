"""What routes depend on: the key of a request, and the model that it asks about."""

from typing import Annotated

from fastapi import Depends, Path, Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from dpoutlier.model.name import MODEL_NAME
from dpoutlier.server.envelope import Exchange
from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.keys import Key
from dpoutlier.server.models import LoadedModel
from dpoutlier.server.parameters import check_given_once
from dpoutlier.server.worker import worker_of

NO_MODEL = (
    "there is no model with that id, or this key is not for it. GET /v1/models lists the models that the key is for."
)


def exchange_of(request: Request) -> Exchange:
    exchange: Exchange = request.scope["exchange"]
    return exchange


async def note_route(request: Request) -> None:
    """The metrics and logs name the template of the route that answers."""
    exchange_of(request).route = request.scope["route"].path


class BearerKey(SecurityBase):
    """The key in the header Authorization."""

    def __init__(self) -> None:
        self.model = HTTPBearer(description="A server that was started with --open needs no key.")
        self.scheme_name = "key"

    async def __call__(self, request: Request) -> Key:
        return exchange_of(request).identify(worker_of(request).guard, request.scope["headers"])


KEY = BearerKey()
RequestKey = Annotated[Key, Security(KEY)]
ModelName = Annotated[
    str, Path(description="The id of a model.", json_schema_extra={"pattern": f"^{MODEL_NAME.pattern}$"})
]


def _served(request: Request, model: str, key: Key, *, audited: bool) -> LoadedModel:
    """The model, if the key is for it. A forbidden model and one that does not exist give the same answer."""
    exchange, worker = exchange_of(request), worker_of(request)
    worker.rate.take(key.id)
    exchange.audited = audited  # and not before: a client over its rate limit must not fill the disk either
    served = worker.models.served.get(model)
    if served is not None:  # a name that no model has is the client's text, and is written nowhere
        exchange.model = served.name
    if served is None or not key.may_use(model):
        raise Refusal("unknown-model", NO_MODEL)
    exchange.release = served.release
    return served


async def model_to_show(request: Request, key: RequestKey, model: ModelName) -> LoadedModel:
    return _served(request, model, key, audited=False)


async def model_to_query(request: Request, key: RequestKey, model: ModelName) -> LoadedModel:
    """A model that points are sent to: the audit log has an entry of each such request."""
    served = _served(request, model, key, audited=True)
    if request.scope["query_string"]:
        check_given_once(request.query_params)
    return served


ModelToShow = Annotated[LoadedModel, Depends(model_to_show)]
ModelToQuery = Annotated[LoadedModel, Depends(model_to_query)]

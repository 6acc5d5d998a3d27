"""The OpenAPI document, derived from the routes and the types of their bodies."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from policies.codec import Record
from policies.model import Json
from watcher import __version__
from watcher.serve import bodies
from watcher.serve.api import Operation
from watcher.serve.asking import Asked

_REF = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
_ABOUT = {
    "host": "the host, as targets name it",
    "id": "the watch, by any unique beginning of its id",
    "number": "the waiter in the watch",
    "file": "a file of the page",
}

_DESCRIPTION = """\
Watches that clear by themselves, on the unix socket `monitor.sock` of the state
directory, and over loopback TCP with a token. What changes anything needs the content
type application/json. Every error is a problem document (RFC 9457)."""


def document_of(operations: Sequence[Operation]) -> Record:
    """Return the document (OpenAPI 3.1) of the operations."""
    kinds: list[object] = [bodies.Problem]
    for operation in operations:
        kinds += [operation.takes] if operation.takes is not None else []
        kinds += [kind for kind in operation.gives.values() if _is_type(kind)]
    schemas, components = msgspec.json.schema_components(
        kinds, schema_hook=_anything, ref_template=_REF
    )
    by_kind = {id(k): s for k, s in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Json]] = {}
    for operation in operations:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        described = _operation(operation, by_kind)
        paths.setdefault(path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "koder-monitor",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}, {}],
        "paths": cast("Json", paths),
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "koder-monitor-PORT",
                    "description": "of a browser; none is needed on the unix socket",
                },
            },
        },
    }


def _anything(kind: type) -> Record:  # noqa: ARG001 - there is but `object`
    return {"description": "any JSON value"}


def _is_type(kind: object) -> bool:
    return kind is not None and not isinstance(kind, str | tuple)


def _operation(operation: Operation, by_kind: Mapping[int, Json]) -> Record:
    summary, _, description = inspect.cleandoc(operation.call.__doc__ or "").partition(
        "\n"
    )
    described: Record = {
        "operationId": operation.call.__name__.lstrip("_"),
        "summary": summary,
        "description": description.strip() or summary,
        "responses": {
            **{
                str(status): _answer(kind, by_kind)
                for status, kind in operation.gives.items()
            },
            "4XX": _problem("what is wrong with the request"),
            "5XX": _problem("what is wrong with the service"),
        },
    }
    parameters = [
        _in_path(name, number == "int")
        for name, number in _PARAMETER.findall(operation.path)
    ]
    parameters += [_asked(asked) for asked in operation.asks]
    if parameters:
        described["parameters"] = parameters
    schema: Json = {"type": "object", "maxProperties": 0}
    if operation.takes is not None:
        schema = by_kind[id(operation.takes)]
    if operation.method != "GET":
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _answer(kind: object, by_kind: Mapping[int, Json]) -> Record:
    if kind is None:
        return {"description": "done; nothing more to say"}
    if isinstance(kind, str | tuple):
        schema: Json = {"type": "string"}
        media = (kind,) if isinstance(kind, str) else kind
        texts: Record = {str(one): {"schema": schema} for one in media}
        return {"description": "text", "content": texts}
    content: Record = {"application/json": {"schema": by_kind[id(kind)]}}
    return {"description": "as asked", "content": content}


def _problem(about: str) -> Record:
    schema: Record = {"$ref": _REF.format(name=bodies.Problem.__name__)}
    return {
        "description": about,
        "content": {"application/problem+json": {"schema": schema}},
    }


def _in_path(name: str, is_number: bool) -> Record:
    schema: Record = {"type": "string", "minLength": 1}
    if is_number:
        schema = {"type": "integer", "minimum": 0}
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _ABOUT[name],
        "schema": schema,
    }


def _asked(asked: Asked) -> Record:
    return {
        "name": asked.name,
        "in": asked.where,
        "description": asked.about,
        "schema": cast("Json", asked.schema),
    }

"""What the server tells of itself: what is served, in which versions, with which fields.

Source: Kubernetes documentation, "API Concepts" and "The Kubernetes API" (discovery, OpenAPI).
"""

from collections.abc import Sequence

from vcjob.local.apiserver import discovery, openapi
from vcjob.local.apiserver.answers import Answer
from vcjob.local.apiserver.negotiation import (
    DISCOVERY,
    OPENAPI_PROTOBUF,
    OPENAPI_PROTOBUF_SENT,
    Media,
    negotiate,
)
from vcjob.local.apiserver.resources import Resource
from vcjob.local.machine_node import FULL_VERSION, KUBERNETES_VERSION, architecture

_PATHS = (
    *("/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"),
)


def about_server(
    segments: tuple[str, ...], resources: Sequence[Resource], accept: str, port: int
) -> Answer | None:
    """The answer to a request for a path that names no resource; None if there is none.

    ``accept`` is the header that says in which form, ``port`` where the server listens. Raises
    Refused (406).
    """
    match segments:
        case ("api" | "apis",):
            return _groups(resources, accept, port, core=segments == ("api",))
        case ("openapi", "v3", *rest) if rest:
            wanted = openapi.group_versions(resources).get("/".join(rest))
            of_group = [r for r in resources if (r.kind.group, r.kind.version) == wanted]
            return Answer(openapi.version_3(of_group)) if wanted else None
    found: object = None
    match segments:
        case ():
            found = {"paths": list(_PATHS)}
        case ("version",):
            found = version()
        case ("api", "v1"):
            found = discovery.resource_list(resources, "", "v1")
        case ("apis", group):
            found = discovery.group(resources, group)
        case ("apis", group, of_group_version):
            found = discovery.resource_list(resources, group, of_group_version)
        case ("openapi", "v2") if accept.startswith(OPENAPI_PROTOBUF):
            return Answer(openapi.VERSION_2_IN_PROTOBUF, media=Media(OPENAPI_PROTOBUF_SENT))
        case ("openapi", "v2"):
            found = openapi.version_2(resources)
        case ("openapi", "v3"):
            found = openapi.index(resources)
    return None if found is None else Answer(found, media=negotiate(accept))


def version() -> dict[str, str]:
    """``/version``."""
    major, minor = KUBERNETES_VERSION.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": FULL_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": f"linux/{architecture()}",
    }


def _groups(resources: Sequence[Resource], accept: str, port: int, *, core: bool) -> Answer:
    media = negotiate(accept, frozenset((DISCOVERY,)))
    if media.form:
        return Answer(discovery.aggregated(resources, core, media.version), media=media)
    if core:
        return Answer(discovery.core_versions(f"127.0.0.1:{port}"), media=media)
    return Answer(discovery.groups(resources), media=media)

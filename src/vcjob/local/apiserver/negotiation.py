"""Which form of answer a client wants: JSON or YAML, objects or tables of them.

Source: Kubernetes documentation, "API Concepts" (resource encodings, tables, metadata).
"""

import functools

import msgspec

from vcjob.local.apiserver.status import Refused

JSON = "application/json"
YAML = "application/yaml"
OPENAPI_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
OPENAPI_PROTOBUF_SENT = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The same as a Content-Type, in which Go takes no @."""
TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
DISCOVERY = "APIGroupDiscoveryList"

_VERSIONS = {
    TABLE: ("meta.k8s.io", ("v1", "v1beta1")),
    PARTIAL: ("meta.k8s.io", ("v1", "v1beta1")),
    f"{PARTIAL}List": ("meta.k8s.io", ("v1", "v1beta1")),
    DISCOVERY: ("apidiscovery.k8s.io", ("v2", "v2beta1")),
}


class Media(msgspec.Struct, frozen=True):
    """A form of answer; ``form`` is "" for objects as they are, ``version`` that of the form."""

    type: str = JSON
    form: str = ""
    version: str = ""

    @property
    def api_version(self) -> str:
        """The apiVersion of an object in this form."""
        return f"{_VERSIONS[self.form][0]}/{self.version}"

    @property
    def content_type(self) -> str:
        """The header's text."""
        if not self.form:
            return self.type
        group = _VERSIONS[self.form][0]
        return f"{self.type};g={group};v={self.version};as={self.form}"


@functools.lru_cache(maxsize=256)
def negotiate(accept: str, forms: frozenset[str] = frozenset()) -> Media:
    """The best form that is served, out of an Accept header; raises Refused (406).

    ``forms`` are those that there are beside plain objects.
    """
    for media in sorted(_wanted(accept or "*/*"), key=lambda pair: -pair[0]):
        found = _served(media[1], media[2], forms)
        if found is not None and media[0] > 0:
            return found
    raise Refused(
        406,
        f"only {JSON} and {YAML} are served here, not {accept[:200]}",
        reason="NotAcceptable",
    )


def _wanted(accept: str) -> list[tuple[float, str, dict[str, str]]]:
    wanted = []
    for part in accept.split(","):
        name, *pairs = (piece.strip() for piece in part.split(";"))
        parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        wanted.append((quality, name.lower(), parameters))
    return wanted


def _served(name: str, parameters: dict[str, str], forms: frozenset[str]) -> Media | None:
    if name in ("*/*", "application/*", JSON):
        media = JSON
    elif name in (YAML, "application/x-yaml", "text/yaml"):
        media = YAML
    else:
        return None
    form = parameters.get("as", "")
    if not form:
        return Media(media)
    group, versions = _VERSIONS.get(form, ("", ()))
    version = parameters.get("v", "")
    if form not in forms or parameters.get("g") != group or version not in versions:
        return None
    return Media(media, form, version)

"""What the server tells of itself, by path."""

import pytest

from vcjob.local.apiserver.about_server import about_server
from vcjob.local.apiserver.resources import BUILT_IN
from vcjob.local.apiserver.status import Refused

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("", "paths"),
        ("version", "gitVersion"),
        ("api", "versions"),
        ("api/v1", "resources"),
        ("apis", "groups"),
        ("apis/batch.volcano.sh", "versions"),
        ("apis/batch.volcano.sh/v1alpha1", "resources"),
        ("openapi/v2", "definitions"),
        ("openapi/v3", "paths"),
        ("openapi/v3/api/v1", "components"),
        ("openapi/v3/apis/batch.volcano.sh/v1alpha1", "components"),
    ],
)
def test_what_is_told(path: str, field: str) -> None:
    answer = about_server(tuple(filter(None, path.split("/"))), BUILT_IN, "application/json", 1)

    assert answer is not None
    assert answer.object[field]


@pytest.mark.parametrize("path", ["api", "apis"])
def test_all_groups_at_once_for_who_asks(path: str) -> None:
    answer = about_server((path,), BUILT_IN, f"{AGGREGATED},application/json", 1)

    assert answer is not None
    assert answer.object["kind"] == "APIGroupDiscoveryList"
    assert answer.media is not None
    assert answer.media.version == "v2"


@pytest.mark.parametrize(
    "path",
    ["nothing", "api/v2", "apis/none", "apis/none/v1", "apis/apps/v1", "openapi", "openapi/v4",
     "openapi/v3/api", "openapi/v3/apis/none/v1", "metrics"],
)  # fmt: skip
def test_what_there_is_not(path: str) -> None:
    assert about_server(tuple(path.split("/")), BUILT_IN, "", 1) is None


def test_a_form_that_there_is_not() -> None:
    with pytest.raises(Refused) as refused:
        about_server(("version",), BUILT_IN, "text/html", 1)
    assert refused.value.code == 406

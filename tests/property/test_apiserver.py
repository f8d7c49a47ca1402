"""Whatever is sent to the API server is answered, and never by an error of its own."""

import asyncio
import copy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import MAPS, PODS, config_map, job, pod, served

from vcjob.local.apiserver.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

COLLECTIONS = (
    MAPS,
    PODS,
    "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands",
    "/api/v1/namespaces/default/serviceaccounts",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
)
QUESTIONS = (
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
)
WHOLE = (
    pod("a", app="x"),
    config_map("a", x="1"),
    job("a"),
    {
        "metadata": {"name": "boats.example.com", "finalizers": ["f"], "ownerReferences": []},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Boat", "plural": "boats"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    },
    {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}], "selector": {"app": "x"}}},
    {"metadata": {"name": "a"}, "involvedObject": {"name": "p"}, "source": {"component": "c"}},
    {"metadata": {"name": "a"}, "data": {"x": "MQ=="}, "stringData": {"y": "z"}, "type": "t"},
    {"metadata": {"name": "a", "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}]}},
    {
        "metadata": {"name": "a"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "podSelector": {"matchLabels": {"app": "x"}},
            "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 1}]}],
        },
    },
    {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    {"metadata": {"name": "a"}, "value": 5, "action": "AbortJob", "target": {"name": "a"}},
    {
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "1"},
        "dryRun": ["All"],
        "orphanDependents": True,
    },
    {"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": "u"}}},
    {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 2**63)
    | st.text(max_size=4)
    | st.lists(st.integers() | st.dictionaries(st.text(max_size=2), st.none()), max_size=2)
    | st.dictionaries(
        st.sampled_from(["name", "a", "$patch", "metadata"]), st.integers() | st.text()
    )
)
FORMS = st.sampled_from(["", ";as=Table;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadataList;v=v1"])


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


@st.composite
def damaged(draw):
    """An object that is right but for one part."""
    whole = copy.deepcopy(draw(st.sampled_from(WHOLE)))
    path = draw(st.sampled_from(list(places(whole))))
    value = draw(VALUES)
    if not path:
        return value
    around = whole
    for key in path[:-1]:
        around = around[key]
    around[path[-1]] = value
    return whole


QUERIES = st.dictionaries(
    st.sampled_from(
        ["limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "dryRun",
         "fieldSelector", "fieldValidation", "includeObject", "force", "gracePeriodSeconds",
         "propagationPolicy", "orphanDependents", "sendInitialEvents"]
    ),
    st.sampled_from(["", "0", "1", "-1", "x", "All", "a=b", "!a", "metadata.name=a", "Strict",
                     "true", "Object", "Exact", "1" * 30]),
    max_size=3,
)  # fmt: skip
PATCHES = st.sampled_from([JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH])
REQUESTS = st.tuples(
    st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "GET"]),
    st.sampled_from(COLLECTIONS + QUESTIONS),
    st.sampled_from(
        ["", "/a", "/a/status", "/a/eviction", "/a/binding", "/a/scale", "/boats.example.com"]
    ),
    damaged(),
    PATCHES,
    QUERIES,
    FORMS,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(REQUESTS, min_size=5, max_size=25))
def test_no_request_is_answered_by_a_failure_of_the_server(requests):
    async def scenario():
        async with served() as ask:
            for method, path, rest, body, patch, query, form in requests:
                content = patch if method == "PATCH" else "application/json"
                manager = {"fieldManager": "fuzz"} if method == "PATCH" else {}
                answer = await ask(
                    method,
                    path + rest,
                    body,
                    type=content,
                    headers={"Accept": f"application/json{form}, application/json"},
                    **{**query, **manager},
                )
                asked = (method, path + rest, body, content, query)
                assert answer.code < 500 or answer.code == 504, (asked, answer.body)
            for path in COLLECTIONS:
                listed = await ask("GET", path, headers={"Accept": "application/json;as=Table;"
                                                         "v=v1;g=meta.k8s.io"})  # fmt: skip
                assert listed.code == 200, (path, listed.body)

    asyncio.run(scenario())

import copy
from typing import Any

import pytest

from vcjob.api import names
from vcjob.api.kinds import SECRET
from vcjob.api.types import Job, MalformedObject, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.base import AddToPod, KeyPair, KeyPairNeed, Plugin, PluginError, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.registry import Registry, installed_plugins, registry_of

OWN = installed_plugins(third_party=False)


def job(
    metadata: Object | None = None, template: Object | None = None, **spec: Any
) -> Job:  # fmt: skip
    template = template or {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return Job.of(
        {
            "metadata": {"name": "j", "namespace": "ns", "uid": "u", **(metadata or {})},
            "spec": {
                "queue": "q",
                "tasks": [{"name": "a", "replicas": 2, "template": template}],
                **spec,
            },
        }
    )


def pod(made: Job, registry: Registry = OWN, index: int = 0, **more: Any) -> Object:
    return Blueprint(made, registry, **more).pod("a", index, version=3, retry_count=1)


def test_a_pod_tells_whose_it_is() -> None:
    made = pod(job(), index=1)
    assert made["metadata"] == {
        "name": "j-a-1",
        "namespace": "ns",
        "labels": {
            names.JOB_NAME: "j",
            names.TASK_SPEC: "a",
            names.JOB_NAMESPACE: "ns",
            names.QUEUE_NAME: "q",
            names.TASK_INDEX: "1",
        },
        "annotations": {
            names.TASK_SPEC: "a",
            names.GROUP_NAME: "j-u",
            names.JOB_NAME: "j",
            names.QUEUE_NAME: "q",
            names.TEMPLATE_UID: "j-a",
            names.TASK_INDEX: "1",
            names.JOB_VERSION: "3",
            names.JOB_RETRY_COUNT: "1",
        },
        "ownerReferences": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "j",
                "uid": "u",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def test_template_metadata_stays_and_ours_wins() -> None:
    metadata = {"labels": {"own": "1", names.TASK_SPEC: "x"}, "annotations": {"note": "2"}}
    made = pod(job(template={"metadata": metadata, "spec": {"containers": []}}))["metadata"]
    assert made["labels"]["own"] == "1"
    assert made["labels"][names.TASK_SPEC] == "a"
    assert made["annotations"]["note"] == "2"


def test_the_mark_of_a_pod_that_goes_is_not_taken_from_a_template() -> None:
    """A template may be copied from a pod; each of its pods would be deleted for the mark."""
    metadata = {"annotations": {names.OUT_OF_SYNC: "true"}}
    made = pod(job(template={"metadata": metadata, "spec": {"containers": []}}))
    assert names.OUT_OF_SYNC not in made["metadata"]["annotations"]


def test_labels_of_the_job_are_copied_where_the_user_asks_for_it() -> None:
    metadata = {
        "labels": {"team": "x", "other": "y", names.PREEMPTABLE: "true", names.TASK_SPEC: "z"},
        "annotations": {names.COPY_LABELS: f"team, gone,{names.TASK_SPEC}"},
    }
    blueprint = Blueprint(job(metadata), OWN)
    labels = blueprint.pod("a", 0)["metadata"]["labels"]
    assert labels["team"] == "x"
    assert labels[names.PREEMPTABLE] == "true"
    assert labels[names.TASK_SPEC] == "a"
    assert "other" not in labels
    assert [problem.message for problem in blueprint.problems] == [
        'the Job has no label "gone" to copy',
        f'the label "{names.TASK_SPEC}" is not copied',
    ]
    assert all(problem.warning for problem in blueprint.problems)


def test_of_two_disruption_budgets_the_first_counts() -> None:
    budgets = {names.JDB_MAX_UNAVAILABLE: "1", names.JDB_MIN_AVAILABLE: "2"}
    annotations = pod(job({"annotations": budgets}))["metadata"]["annotations"]
    assert annotations[names.JDB_MIN_AVAILABLE] == "2"
    assert names.JDB_MAX_UNAVAILABLE not in annotations


def test_what_the_template_leaves_empty_comes_from_the_job() -> None:
    made = job(schedulerName="volcano", priorityClassName="high")
    assert pod(made)["spec"]["schedulerName"] == "volcano"
    assert pod(made)["spec"]["priorityClassName"] == "high"
    own = {"spec": {"containers": [], "schedulerName": "mine", "priorityClassName": "low"}}
    kept = pod(job(template=own, schedulerName="volcano", priorityClassName="high"))["spec"]
    assert (kept["schedulerName"], kept["priorityClassName"]) == ("mine", "low")


def test_pods_of_a_partitioned_task_know_their_partition() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 2}
    task = {"name": "a", "replicas": 4, "template": {"spec": {}}, "partitionPolicy": policy}
    blueprint = Blueprint(job(tasks=[task]), OWN)
    labels = [made["metadata"]["labels"][names.PARTITION_ID] for made in blueprint.pods()]
    assert labels == ["0", "0", "1", "1"]


def test_a_queue_over_several_clusters_marks_pods() -> None:
    metadata = pod(job(), forwarding=True)["metadata"]
    assert metadata["labels"][names.JOB_FORWARDING] == "true"
    assert metadata["annotations"][names.JOB_FORWARDING] == "true"


def test_unknown_fields_of_a_template_are_kept() -> None:
    assert pod(job(template={"spec": {"futureField": [1]}}))["spec"] == {"futureField": [1]}


def test_supporting_objects_belong_to_the_job_and_say_who_manages_them() -> None:
    blueprint = Blueprint(
        job(plugins={"svc": []}, volumes=[{"mountPath": "/d", "volumeClaim": {}}]), OWN
    )
    made = blueprint.supporting_objects()
    assert [obj["kind"] for obj in made] == [
        "PersistentVolumeClaim",
        "ConfigMap",
        "Service",
        "NetworkPolicy",
    ]
    for obj in made:
        assert obj["metadata"]["namespace"] == "ns"
        assert obj["metadata"]["labels"] == {names.MANAGED_BY: "vcjob"}
        assert obj["metadata"]["ownerReferences"][0]["uid"] == "u"
    claim = names.claim_name("j", "u", 0)
    assert blueprint.marks == {"plugin-svc": "svc", f"volume-pvc-{claim}": claim}


def test_claims_are_mounted_once_each_in_containers_only() -> None:
    template = {"spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}}
    volumes = [
        {"mountPath": "/a", "volumeClaimName": "mine"},
        {"mountPath": "/b", "volumeClaimName": "mine"},
        {"mountPath": "/c", "volumeClaim": {}},
        {"mountPath": "/d", "volumeClaim": {}, "volumeClaimName": "written-back"},
    ]
    blueprint = Blueprint(job(template=template, volumes=volumes), OWN)
    spec = blueprint.pod("a", 0)["spec"]
    made = [names.claim_name("j", "u", 2), "written-back"]
    assert [one["persistentVolumeClaim"]["claimName"] for one in spec["volumes"]] == ["mine", *made]
    mounts = spec["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts] == ["/a", "/c", "/d"]
    assert [mount["name"] for mount in mounts] == [one["name"] for one in spec["volumes"]]
    assert "volumeMounts" not in spec["initContainers"][0]
    assert [obj["metadata"]["name"] for obj in blueprint.supporting_objects()] == made


def test_pods_share_parts_but_making_one_changes_no_other() -> None:
    made = job(plugins={"env": [], "svc": []})
    before = copy.deepcopy(made)
    blueprint = Blueprint(made, OWN)
    first = copy.deepcopy(blueprint.pod("a", 0))
    blueprint.pod("a", 1)
    assert blueprint.pod("a", 0) == first
    assert made == before


def test_an_undefaulted_job_has_a_blueprint() -> None:
    bare = Job.of({"metadata": {"name": "j"}, "spec": {"tasks": [{"replicas": 1}]}})
    blueprint = Blueprint(bare, OWN)
    [made] = blueprint.pods()
    assert made["metadata"]["name"] == "j--0"
    assert made["metadata"]["labels"][names.TASK_SPEC] == "default"
    assert Blueprint(Job(), OWN).pod_group()["spec"]["minTaskMember"] == {}


@pytest.mark.parametrize(
    ("template", "where"),
    [
        ({"spec": []}, "spec must be an object"),
        ({"spec": {"containers": {}}}, "spec.containers must be a list of objects"),
        ({"spec": {"containers": ["c"]}}, "spec.containers must be a list of objects"),
        ({"spec": {"initContainers": [{"env": "A=1"}]}}, r"spec.initContainers\[0\].env must"),
        ({"spec": {"volumes": [1]}}, "spec.volumes must be a list"),
        (
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}},
            "spec.containers.0..resources.limits 'much' is not a quantity",
        ),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels must have texts"),
    ],
)
def test_a_template_of_impossible_shape_is_told(template: Object, where: str) -> None:
    with pytest.raises(MalformedObject, match=f'the template of task "a": {where}'):
        Blueprint(job(template=template), OWN)


NEED = KeyPairNeed("lock", "ed25519", "j-lock", "private", "public")


def _lock_objects(request: Request) -> list[Object]:
    pair = request.key_pair(NEED)
    data = {"private": pair.private, "public": pair.public}
    return [{"apiVersion": "v1", "kind": SECRET.kind, "metadata": {"name": "j-lock"},
             "stringData": data}]  # fmt: skip


LOCK = Plugin(name="lock", help="-", key_pairs=lambda _: [NEED], objects=_lock_objects)


def test_keys_are_an_input_and_a_placeholder_stands_where_none_is_given() -> None:
    made = job(plugins={"lock": []})
    without = Blueprint(made, registry_of([LOCK]))
    assert without.key_pairs == (NEED,)
    assert "<private key" in without.supporting_objects()[0]["stringData"]["private"]
    given = Blueprint(made, registry_of([LOCK]), {"lock": KeyPair("s", "p")})
    assert given.supporting_objects()[0]["stringData"] == {"private": "s", "public": "p"}
    assert "s" not in repr(KeyPair("s", "p")).removeprefix("KeyPair")


def _broken(_: Request) -> list[Object]:
    raise ZeroDivisionError("x")


def _broken_pods(_: Request) -> AddToPod:
    def add(_: PodDraft) -> None:
        raise ZeroDivisionError("x")

    return add


def test_a_plugin_that_fails_is_named() -> None:
    broken = registry_of([Plugin(name="b", help="-", objects=_broken)])
    [problem] = Blueprint(job(plugins={"b": []}), broken).problems
    assert problem.message == "the plugin b failed: ZeroDivisionError: x"
    late = registry_of([Plugin(name="b", help="-", pods=_broken_pods)])
    with pytest.raises(PluginError, match="the plugin b failed: ZeroDivisionError: x"):
        Blueprint(job(plugins={"b": []}), late).pod("a", 0)


def test_unknown_plugins_unread_arguments_and_missing_plugins_are_problems() -> None:
    needy = Plugin(name="needy", help="-", requires=("svc",))
    registry = registry_of([needy, OWN.find("svc")])
    found = Blueprint(job(plugins={"needy": [], "nosuch": []}), registry).problems
    assert {(problem.path[-1], problem.warning) for problem in found} == {
        ("needy", True),
        ("nosuch", False),
    }
    [stopped] = Blueprint(job(plugins={"svc": ["true", "--x"]}), registry).problems
    assert stopped.warning
    assert stopped.path == ("spec", "plugins", "svc", 0)
    [wrong] = Blueprint(job(plugins={"svc": ["--x"]}), registry).problems
    assert not wrong.warning
    assert wrong.path == ("spec", "plugins", "svc", 0)

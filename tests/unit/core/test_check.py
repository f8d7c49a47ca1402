"""Each rule of admission in one table: what is done to a right Job, where and what is told."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from vcjob.api.problems import Problem, errors, format_path
from vcjob.core.check import Lookup, check, check_update
from vcjob.plugins.base import Plugin, Request
from vcjob.plugins.registry import installed_plugins, registry_of

Change = Callable[[dict[str, Any]], None]


def job() -> dict[str, Any]:
    def task(name: str, replicas: int) -> dict[str, Any]:
        container = {"name": "main", "image": "busybox"}
        spec = {"restartPolicy": "Never", "containers": [container]}
        return {"name": name, "replicas": replicas, "template": {"spec": spec}}

    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"plugins": {"svc": [], "env": []}, "tasks": [task("ps", 1), task("worker", 3)]},
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    """A right Job with ``value`` at ``path`` (below spec, ``/`` between keys)."""
    result = job()
    target: Any = result["spec"]
    *parents, last = path.split("/")
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target.setdefault(part, {})
    target[int(last) if isinstance(target, list) else last] = value
    return result


def told(problems: list[Problem]) -> list[str]:
    return [f"{format_path(problem.path)}: {problem.message}" for problem in problems]


def test_a_right_job_has_no_problems() -> None:
    assert check(job()) == []


POD = "tasks/0/template/spec"
CONTAINER = f"{POD}/containers/0"
AT_POD = "spec.tasks[0].template.spec"
AT_CONTAINER = f"{AT_POD}.containers[0]"

REFUSED = [
    # fields
    ("replica", 3, "spec.replica", 'unknown field "replica"'),
    ("tasks/0/replicas", "2", "spec.tasks[0].replicas", "must be a whole number"),
    ("tasks/0/replicas", True, "spec.tasks[0].replicas", "must be a whole number"),
    ("minSuccess", 2**31, "spec.minSuccess", "at most 2147483647"),
    ("tasks", {}, "spec.tasks", "must be a list"),
    ("tasks/0", "x", "spec.tasks[0]", "must be an object"),
    ("tasks/0/template", None, "spec.tasks[0].template", "lacks"),
    ("plugins/svc", None, "spec.plugins.svc", "must be a list"),
    ("runningEstimate", "soon", "spec.runningEstimate", "duration"),
    # tasks
    ("tasks/1/name", "ps", "spec.tasks[1].name", "so has tasks[0]"),
    ("tasks/1/minAvailable", 4, "spec.tasks[1].minAvailable", "replicas makes only 3"),
    ("minAvailable", 5, "spec.minAvailable", "only 4"),
    ("networkTopology", {"highestTierAllowed": 1, "highestTierName": "x"},
     "spec.networkTopology", "both"),
    ("tasks/1/partitionPolicy", {"totalPartitions": 2, "partitionSize": 2},
     "spec.tasks[1].replicas", "make 4"),
    ("tasks/0/topologyPolicy", "restricted", AT_CONTAINER, "whole number of CPUs"),
    ("tasks/1/dependsOn", {"name": ["pss"]}, "spec.tasks[1].dependsOn.name[0]", "no task"),
    ("tasks/1/dependsOn", {"name": ["worker"]}, "spec.tasks[1].dependsOn.name[0]", "itself"),
    ("tasks/1/dependsOn", {"name": ["ps", "ps"]}, "spec.tasks[1].dependsOn.name[1]", "twice"),
    # policies
    ("policies", [{"event": "PodFailed"}], "spec.policies[0].action", "no action"),
    ("policies", [{"event": "PodFailed", "action": "Restart"}],
     "spec.policies[0].action", 'no action "Restart"'),
    ("policies", [{"events": ["*"], "action": "AbortJob"}, {"event": "Unknown",
     "action": "AbortJob"}], "spec.policies[0]", "stands for all"),
    # volumes
    ("volumes", [{"mountPath": "/a:b", "volumeClaimName": "c"}],
     "spec.volumes[0].mountPath", "':'"),
    # plugins
    ("plugins/svcs", [], "spec.plugins.svcs", "no plugin"),
    ("plugins/svc", ["--disable-network-policy=yes"], "spec.plugins.svc[0]", "true nor false"),
    ("plugins/svc", ["--no-such"], "spec.plugins.svc[0]", "no argument"),
    # pod templates
    (f"{CONTAINER}/image", "", f"{AT_CONTAINER}.image", "lacks"),
    (f"{CONTAINER}/name", "A", f"{AT_CONTAINER}.name", "lower-case"),
    (f"{CONTAINER}/args", [1], f"{AT_CONTAINER}.args[0]", "must be a text"),
    (f"{CONTAINER}/command", "sh -c x", f"{AT_CONTAINER}.command", "must be a list"),
    (f"{POD}/initContainers", [{"name": "main", "image": "i"}], AT_CONTAINER, "same name main"),
    (f"{CONTAINER}/env", [{"name": "A=B"}], f"{AT_CONTAINER}.env[0].name", "other than '='"),
    (f"{CONTAINER}/env", [{"name": "A", "value": 1}], f"{AT_CONTAINER}.env[0].value", "a text"),
    (f"{CONTAINER}/env", [{"name": "A"}, {"name": "A"}], f"{AT_CONTAINER}.env[1].name", "same"),
    (f"{CONTAINER}/env", [{"name": "A", "valueFrom": {}}],
     f"{AT_CONTAINER}.env[0].valueFrom", "none of them"),
    (f"{CONTAINER}/env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}],
     f"{AT_CONTAINER}.env[0].valueFrom.fieldRef.fieldPath", "no value"),
    (f"{CONTAINER}/env", [{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}],
     f"{AT_CONTAINER}.env[0].valueFrom.configMapKeyRef.name", "lacks"),
    (f"{CONTAINER}/env",
     [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}],
     f"{AT_CONTAINER}.env[0].valueFrom.resourceFieldRef.resource", "no request or limit"),
    (f"{CONTAINER}/envFrom", [{"prefix": "X"}], f"{AT_CONTAINER}.envFrom[0]", "none of them"),
    (f"{CONTAINER}/ports", [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
     f"{AT_CONTAINER}.ports[1]", "same name a"),
    (f"{CONTAINER}/ports", [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}],
     f"{AT_CONTAINER}.ports[1].containerPort", "same"),
    (f"{CONTAINER}/ports", [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2,
     "hostPort": 9}], f"{AT_CONTAINER}.ports[1]", "port 9 of the node"),
    (f"{CONTAINER}/volumeMounts", [{"name": "x", "mountPath": "/x"}],
     f"{AT_CONTAINER}.volumeMounts[0].name", 'no volume "x"'),
    (f"{CONTAINER}/resources", {"requests": {"cpu": "2"}, "limits": {"cpu": 1}},
     f"{AT_CONTAINER}.resources.requests.cpu", "over the limit"),
    (f"{CONTAINER}/resources", {"requests": {"gpu": 1}},
     f"{AT_CONTAINER}.resources.requests.gpu", "no resource"),
    (f"{CONTAINER}/resources", {"requests": {"x.io/gpu": 1}},
     f'{AT_CONTAINER}.resources.requests["x.io/gpu"]', "overcommitted"),
    (f"{CONTAINER}/resources", {"limits": {"x.io/gpu": "0.5"}},
     f'{AT_CONTAINER}.resources.limits["x.io/gpu"]', "whole numbers"),
    (f"{CONTAINER}/resources", {"limits": {"cpu": "1 core"}},
     f"{AT_CONTAINER}.resources.limits.cpu", "an amount"),
    (f"{CONTAINER}/resources", {"limits": {"cpu": "-1"}},
     f"{AT_CONTAINER}.resources.limits.cpu", "at least 0"),
    (f"{CONTAINER}/readinessProbe", {"periodSeconds": 3},
     f"{AT_CONTAINER}.readinessProbe", "none of them"),
    (f"{CONTAINER}/livenessProbe", {"exec": {"command": ["x"]}, "successThreshold": 2},
     f"{AT_CONTAINER}.livenessProbe.successThreshold", "must be 1"),
    (f"{CONTAINER}/lifecycle", {"preStop": {"exec": {}}},
     f"{AT_CONTAINER}.lifecycle.preStop.exec.command", "lacks the command"),
    (f"{CONTAINER}/imagePullPolicy", "never", f"{AT_CONTAINER}.imagePullPolicy", "cannot be"),
    (f"{POD}/initContainers", [{"name": "i", "image": "i", "livenessProbe": {"grpc": {"port": 1}}}],
     f"{AT_POD}.initContainers[0].livenessProbe", "init container"),
    (f"{POD}/volumes", [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}],
     f"{AT_POD}.volumes[0]", "one source"),
    (f"{POD}/volumes", [{"name": "v"}, {"name": "v"}], f"{AT_POD}.volumes[1].name", "same"),
    (f"{POD}/volumes", [{"name": "v", "configMap": {}}],
     f"{AT_POD}.volumes[0].configMap.name", "lacks"),
    (f"{POD}/volumes", [{"name": "v", "configMap": {"name": "c", "items": [
     {"key": "k", "path": "../x"}]}}], f"{AT_POD}.volumes[0].configMap.items[0].path", "'..'"),
    (f"{POD}/volumes", [{"name": "v", "secret": {"secretName": "c", "defaultMode": 512}}],
     f"{AT_POD}.volumes[0].secret.defaultMode", "at most 511"),
    (f"{POD}/volumes", [{"name": "v", "projected": {"sources": [{}]}}],
     f"{AT_POD}.volumes[0].projected.sources[0]", "none of them"),
    (f"{POD}/volumes", [{"name": "v", "hostPath": {"path": "/a/../b"}}],
     f"{AT_POD}.volumes[0].hostPath.path", "'..'"),
    (f"{POD}/volumes", [{"name": "j-svc"}], f"{AT_POD}.volumes[0].name", "same name"),
    (f"{POD}/hostname", "a.b", f"{AT_POD}.hostname", "lower-case"),
    (f"{POD}/dnsPolicy", "None", f"{AT_POD}.dnsPolicy", "name servers"),
    (f"{POD}/tolerations", [{"value": "x"}], f"{AT_POD}.tolerations[0].operator", "Exists"),
    (f"{POD}/ephemeralContainers", [{"name": "e", "image": "i"}],
     f"{AT_POD}.ephemeralContainers", "cannot have"),
    (f"{POD}/affinity", {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
     {"topologyKey": "k", "labelSelector": {"matchExpressions": [
      {"key": "a", "operator": "In"}]}}]}},
     f"{AT_POD}.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
     ".labelSelector.matchExpressions[0].values", "needs values"),
    ("tasks/0/template/metadata", {"labels": {"a": "b c"}},
     "spec.tasks[0].template.metadata.labels.a", "letters"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "place", "says"), REFUSED)
def test_one_wrong_thing_is_one_error_at_its_place(
    path: str, value: Any, place: str, says: str
) -> None:
    (problem,) = errors(check(changed(path, value)))
    assert format_path(problem.path) == place
    assert says in problem.message


WARNED = [
    (f"{POD}/noSuch", 1, f"{AT_POD}.noSuch", "unknown field"),
    ("tasks/0/template/restartPolicy", "Never", "spec.tasks[0].template.restartPolicy", "unknown"),
    (f"{POD}/restartPolicy", None, AT_POD, "never completes"),
    ("policies", [{"event": "PodPending", "action": "AbortJob"}], "spec.policies[0]",
     "never acts"),
    ("policies", [{"event": "PodFailed", "action": "RestartPartition"}],
     "spec.policies[0].action", "no task has a partitionPolicy"),
    ("tasks/1/policies", [{"event": "PodFailed", "action": "RestartPartition"}],
     "spec.tasks[1].policies[0].action", 'task "worker" has no partitionPolicy'),
    ("policies", [{"exitCode": 1, "action": "X"}], "spec.policies[0].action", "no action"),
    ("minSuccess", 5, "spec.minSuccess", "make only 4"),
    ("tasks/0/template/metadata", {"labels": {"a": None}},
     "spec.tasks[0].template.metadata.labels.a", "empty text"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "place", "says"), WARNED)
def test_what_seldom_is_meant_draws_a_warning(path: str, value: Any, place: str, says: str) -> None:
    (problem,) = check(changed(path, value))
    assert problem.warning
    assert format_path(problem.path) == place
    assert says in problem.message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{POD}/volumes", [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]),
        (f"{CONTAINER}/resources", {"requests": {"cpu": 0.5}, "limits": {"x.io/gpu": "1"}}),
        (f"{CONTAINER}/ports", [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]),
        (f"{CONTAINER}/resources", {"requests": {"cpu": "1000m"}, "limits": {"cpu": 1}}),
        ("tasks/1/replicas", 0),
        ("tasks/1/dependsOn", {"name": ["ps"], "iteration": "any"}),
        ("policies", [{"event": "*", "action": "RestartJob"}]),
        ("tasks/1/partitionPolicy", {"totalPartitions": 1, "partitionSize": 3}),
        ("volumes", [{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]),
        ("priorityClassName", "high"),
        ("plugins/svc", ["--publish-not-ready-addresses", "--inject-hosts-env=F"]),
    ],
)
def test_right_variants_pass(path: str, value: Any) -> None:
    assert check(changed(path, value)) == []


def test_a_circle_of_tasks_is_named() -> None:
    wrong = job()
    first, second = wrong["spec"]["tasks"]
    first["dependsOn"], second["dependsOn"] = {"name": ["worker"]}, {"name": ["ps"]}
    (problem,) = check(wrong)
    assert "ps -> worker -> ps" in problem.message or "worker -> ps -> worker" in problem.message


@pytest.mark.parametrize(
    ("field", "where", "hint"),
    [
        ("Replicas", "tasks/0/Replicas", 'did you mean "replicas"?'),
        ("restartPolicy", "restartPolicy", '"restartPolicy" belongs in spec.tasks[]'),
        ("image", f"{POD}/image", "belongs in spec.tasks[0].template.spec.initContainers[]"),
        ("policies", f"{POD}/policies", '"policies" belongs in spec.tasks[0]'),
    ],
)
def test_unknown_fields_are_told_where_they_belong(field: str, where: str, hint: str) -> None:
    (problem,) = check(changed(where, "x"))
    assert f'unknown field "{field}"' in problem.message
    assert hint.split("initContainers")[0] in problem.hint


class TestNames:
    def named(self, name: str, task: str = "worker", replicas: int = 3) -> list[Problem]:
        subject = job()
        subject["metadata"]["name"] = name
        subject["spec"]["tasks"][1] |= {"name": task, "replicas": replicas}
        return errors(check(subject))

    def test_the_last_pod_decides(self) -> None:
        name = "j" * 54  # <54>-worker-9 has 63 characters
        assert self.named(name, replicas=10) == []
        (problem,) = self.named(name, replicas=11)
        assert format_path(problem.path) == "spec.tasks[1].name"
        assert "-worker-10, which has 64 characters" in problem.message
        assert "1 character" in problem.hint

    def test_a_name_that_is_too_long_for_a_label_is_told_once(self) -> None:
        assert [format_path(p.path) for p in self.named("j" * 70)] == ["metadata.name"] * 2

    def test_dots_are_for_jobs_without_svc_only(self) -> None:
        assert self.named("my.job")
        subject = job()
        subject["metadata"]["name"] = "my.job"
        del subject["spec"]["plugins"]
        assert check(subject) == []

    def test_volumes_need_room_for_their_names(self) -> None:
        subject = job()
        subject["spec"] |= {
            "plugins": {}, "volumes": [{"mountPath": "/a", "volumeClaimName": "c"}]
        }  # fmt: skip
        subject["metadata"]["name"] = "j" * 51
        (problem,) = check(subject)
        assert "at most 50 characters" in problem.hint

    def test_generate_name_is_checked_with_its_suffix(self) -> None:
        subject = job()
        subject["metadata"] = {"generateName": "j-"}
        assert check(subject) == []
        subject["metadata"] = {"generateName": "j" * 60}
        assert all(p.path == ("metadata", "generateName") for p in check(subject)[:1])

    @pytest.mark.parametrize("metadata", [{}, {"name": ""}, {"namespace": "n"}])
    def test_a_name_is_needed(self, metadata: dict[str, Any]) -> None:
        subject = job()
        subject["metadata"] = metadata
        assert told(check(subject)) == ["metadata.name: metadata lacks the name"]


def test_host_lists_over_one_mebibyte_are_refused_with_the_number_that_fits() -> None:
    subject = changed("tasks/1/replicas", 10**9)
    (problem,) = errors(check(subject))
    fitting = int(problem.hint.split()[5])
    assert not errors(check(changed("tasks/1/replicas", fitting)))
    assert errors(check(changed("tasks/1/replicas", fitting + 1)))


def test_variables_over_128_kibibytes_draw_a_warning() -> None:
    (problem,) = check(changed("tasks/1/replicas", 10_000))
    assert problem.warning
    assert "VC_WORKER_HOSTS" in problem.message


MEANS_NOTHING = [
    ("suspend", "yes", "means nothing"),
    ("minimum-first", "yes", "means nothing"),
    ("uncounted-events", "PodFailed,PodEvited", 'names "PodEvited"'),
    ("uncounted-events", "*", 'names "*"'),
    ("inject-current-host", "yes", 'must be "true" or "false"'),
    ("host-addresses", "[]", "must be a JSON object"),
    ("service-labels", "{", "must be a JSON object"),
    ("network-policy-sources", '[{"pod": {}}]', '[0].pod: unknown field "pod"'),
]


@pytest.mark.parametrize(("name", "value", "says"), MEANS_NOTHING)
def test_a_value_of_our_annotations_that_means_nothing_is_refused(
    name: str, value: str, says: str
) -> None:
    key = f"vcjob.dev/{name}"
    subject = annotated({key: value})
    (problem,) = errors(check(subject))
    assert problem.path == ("metadata", "annotations", key)
    assert says in problem.message
    for before in ({}, {key: "false"}, {"other": "x"}):
        (problem,) = errors(check_update(annotated(before), subject))
        assert problem.path == ("metadata", "annotations", key)
    assert check_update(subject, annotated({key: value, "other": "x"})) == [], "it was there"
    assert check_update(subject, job()) == []


@pytest.mark.parametrize(
    ("kind", "key", "value", "says"),
    [
        ("annotations", "vcjob.dev/suspent", "true", "no annotation"),
        ("annotations", "vcjob.dev/copy-labels", "team", 'label "team"'),
        ("annotations", "vcjob.dev/ssh-secret", "keys", "does not use the plugin ssh"),
        ("labels", "vcjob.dev/suspend", "true", "no effect as a label"),
    ],
)
def test_what_has_no_effect_draws_a_warning(kind: str, key: str, value: str, says: str) -> None:
    subject = job()
    subject["metadata"][kind] = {key: value}
    (problem,) = check(subject)
    assert problem.warning
    assert says in problem.message
    if kind == "annotations":
        assert check_update(job(), subject) == [problem]


def annotated(annotations: dict[str, str]) -> dict[str, Any]:
    subject = job()
    subject["metadata"]["annotations"] = annotations
    return subject


def test_a_plugin_of_volcano_that_is_not_there_is_admitted_with_a_warning() -> None:
    registry = registry_of([installed_plugins(third_party=False).find(n) for n in ("env", "svc")])
    (problem,) = check(changed("plugins/ssh", []), plugins=registry)
    assert problem.warning
    assert "ssh" in problem.message


def test_a_plugin_of_another_package_is_asked_and_may_fail() -> None:
    def fail(_: Request) -> list[Problem]:
        raise RuntimeError("broken")

    def complain(_: Request) -> list[Problem]:
        return [Problem("too greedy", ("spec", "plugins", "greet"))]

    for problems, says in ((fail, "RuntimeError: broken"), (complain, "too greedy")):
        plugins = registry_of([Plugin(name="greet", help="Greets.", problems=problems)])
        (problem,) = check(changed("plugins", {"greet": []}), plugins=plugins)
        assert says in problem.message
        assert format_path(problem.path) == "spec.plugins.greet"


def test_a_command_in_one_text_is_told_how_it_becomes_a_list() -> None:
    wrong = job()
    wrong["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = "sleep 5"
    assert 'write it as a list: ["sh","-c","sleep 5"]' in [p.hint for p in check(wrong)]


def test_an_unknown_plugin_says_where_plugins_come_from() -> None:
    (problem,) = check(changed("plugins", {"zzz": []}))
    assert "known here: env, " in problem.hint
    assert "other packages" in problem.hint
    (problem,) = check(changed("plugins", {"Env": []}))
    assert problem.hint == 'did you mean "env"?'
    (problem,) = check(changed("plugins", {"torchrun": []}))
    assert problem.hint.startswith('did you mean "pytorch"? If not: plugins of other packages must')


def test_all_problems_are_told_at_once() -> None:
    wrong = changed("tasks/0/replicas", "x")
    wrong["spec"] |= {"queue": "Q", "minAvailable": 99, "plugins": {"nope": []}, "extra": 1}
    places = {format_path(problem.path) for problem in check(wrong)}
    assert places == {"spec.tasks[0].replicas", "spec.queue", "spec.plugins.nope", "spec.extra"}


class TestLookup:
    OPEN = {"status": {"state": "Open"}}  # noqa: RUF012

    def test_without_a_cluster_nothing_is_said_about_queues(self) -> None:
        assert check(changed("queue", "nowhere")) == []

    @pytest.mark.parametrize(
        ("queue", "says"),
        [
            ("defualt", "no queue"),
            ("root", "root queue"),
            ("parent", "below it"),
            ("closing", "Closing"),
        ],
    )
    def test_queues_must_exist_be_open_and_leaves(self, queue: str, says: str) -> None:
        queues = {
            "root": self.OPEN,
            "default": self.OPEN,
            "parent": self.OPEN,
            "child": {"spec": {"parent": "parent"}},
            "closing": {"status": {"state": "Closing"}},
        }
        (problem,) = check(changed("queue", queue), Lookup(queues))
        assert says in problem.message
        assert check(changed("queue", "child"), Lookup(queues)) == []

    @pytest.mark.parametrize(
        ("path", "at"),
        [
            ("priorityClassName", "spec.priorityClassName"),
            (f"{POD}/priorityClassName", f"{AT_POD}.priorityClassName"),
        ],
    )
    def test_a_missing_priority_class_is_a_warning(self, path: str, at: str) -> None:
        cluster = Lookup({"default": self.OPEN}, frozenset({"high"}))
        (problem,) = check(changed(path, "hihg"), cluster)
        assert problem.warning
        assert format_path(problem.path) == at
        assert problem.hint == 'did you mean "high"?'
        assert not check(changed(path, "high"), cluster)
        assert not check(changed(path, "system-node-critical"), cluster)


class TestUpdate:
    def test_an_unchanged_job_may_be_sent_again(self) -> None:
        assert check_update(job(), job()) == []

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("tasks/1/replicas", 9),
            ("tasks/1/minAvailable", 1),
            ("minAvailable", 2),
            ("priorityClassName", "high"),
            ("queue", "default"),
            (f"{CONTAINER}/resources", {}),
        ],
    )
    def test_what_may_change(self, path: str, value: Any) -> None:
        assert check_update(job(), changed(path, value)) == []

    @pytest.mark.parametrize(
        ("path", "value", "place"),
        [
            (f"{CONTAINER}/image", "x", f"{AT_CONTAINER}.image"),
            ("plugins/ssh", [], "spec.plugins.ssh"),
            ("maxRetry", 7, "spec.maxRetry"),
            ("volumes", [{"mountPath": "/a", "volumeClaimName": "c"}], "spec.volumes"),
            ("tasks/0/name", "x", "spec.tasks[0].name"),
        ],
    )
    def test_what_is_fixed(self, path: str, value: Any, place: str) -> None:
        (problem,) = errors(check_update(job(), changed(path, value)))
        assert format_path(problem.path) == place
        assert "cannot be changed" in problem.message

    def test_a_task_in_partitions_cannot_be_scaled(self) -> None:
        policy = {"totalPartitions": 1, "partitionSize": 2}
        old = changed("tasks/1", {**job()["spec"]["tasks"][1], "partitionPolicy": policy})
        old["spec"]["tasks"][1]["replicas"] = 2
        new = copy.deepcopy(old)
        new["spec"]["tasks"][1]["replicas"] = 4
        (problem,) = errors(check_update(old, new))
        assert format_path(problem.path) == "spec.tasks[1].replicas"
        assert "cannot be scaled" in problem.hint

    def test_amounts_are_compared_by_meaning(self) -> None:
        old = changed(f"{CONTAINER}/resources", {"limits": {"cpu": "1000m"}})
        assert check_update(old, changed(f"{CONTAINER}/resources", {"limits": {"cpu": 1}})) == []

    def test_the_controller_may_write_the_name_of_a_claim(self) -> None:
        volume = {"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
        new = changed("volumes", [{**volume, "volumeClaimName": "j-pvc-0"}])
        assert check_update(changed("volumes", [volume]), new) == []

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("newField", 1),
            ("tasks/1/name", "Bad_Name"),
            ("tasks/0/minAvailable", 99),
            ("plugins/nobodys", []),
        ],
    )
    def test_what_was_wrong_before_refuses_no_other_change(self, path: str, value: Any) -> None:
        """A Job may be older than a rule, or its CustomResourceDefinition newer than vcjob."""
        old = changed(path, value)
        new = copy.deepcopy(old)
        assert errors(check(old))
        for one, replicas in ((old, 9), (new, 8)):
            one["status"] = {"newField": 1}
            one["spec"]["tasks"][1]["replicas"] = replicas
        assert check_update(old, new) == []
        new["spec"]["tasks"][1]["minAvailable"] = 10
        (problem,) = errors(check_update(old, new))
        assert format_path(problem.path) == "spec.tasks[1].minAvailable"

    def test_scaling_beyond_what_names_allow_is_refused(self) -> None:
        old, new = job(), changed("tasks/1/replicas", 11)
        for one in (old, new):
            one["metadata"]["name"] = "j" * 54
        assert check_update(old, old) == []
        assert "64 characters" in check_update(old, new)[0].message


def test_checking_does_not_grow_with_replicas() -> None:
    """Counted in calls, not in time: the same work for 10 and for 10,000 pods."""
    assert _calls(changed("tasks/1/replicas", 10_000)) < 1.2 * _calls(
        changed("tasks/1/replicas", 10)
    )


@pytest.mark.parametrize("mistaken", ["dependsOn", "volumeMounts", "plugins"])
def test_mistakes_cost_no_more_than_their_number(mistaken: str) -> None:
    """Else a manifest that API servers take in would hold up a webhook for minutes."""

    def mistakes(count: int) -> dict[str, Any]:
        made, names = job(), [f"wrong{number}" for number in range(count)]
        spec, task = made["spec"], made["spec"]["tasks"][1]
        pod = task["template"]["spec"]
        if mistaken == "plugins":
            spec["plugins"] = {name: [] for name in names}
        elif mistaken == "dependsOn":
            spec["tasks"] += [
                {**task, "name": f"t{number}", "dependsOn": {"name": [name]}}
                for number, name in enumerate(names)
            ]
        else:
            pod["volumes"] = [{"name": f"v{number}", "emptyDir": {}} for number in range(count)]
            pod["containers"][0]["volumeMounts"] = [
                {"name": name, "mountPath": f"/{name}"} for name in names
            ]
        return made

    few, many = mistakes(600), mistakes(1200)
    assert _calls(many) < 3 * _calls(few)
    problems = errors(check(many))
    assert len(problems) < 700
    assert problems[-1].message == "there are more problems than these"


def _calls(subject: dict[str, Any]) -> int:
    import sys

    count = 0

    def profile(*_: object) -> None:
        nonlocal count
        count += 1

    check(copy.deepcopy(subject))  # what is cached is cached now
    sys.setprofile(profile)
    try:
        check(subject)
    finally:
        sys.setprofile(None)
    return count

"""The table of fields holds every level of a pod template, and a Job holds that of each task."""

from field_paths import field_paths, pod_fields

from vcjob.api.schema.job import JOB


def test_pod_fields_name_every_level_once_and_parents_first() -> None:
    fields = list(pod_fields())
    assert len(fields) == len(set(fields))
    for path in (
        "metadata.labels",
        "spec.containers",
        "spec.containers[].env[].valueFrom.fieldRef.fieldPath",
        "spec.initContainers[].resources.limits",
        "spec.volumes[].projected.sources[].serviceAccountToken.expirationSeconds",
        "spec.topologySpreadConstraints[].labelSelector.matchExpressions[].operator",
    ):
        assert path in fields
        parent = path.rpartition(".")[0].removesuffix("[]")
        assert fields.index(parent) < fields.index(path)


def test_a_job_holds_the_pod_template_of_each_task() -> None:
    fields = set(field_paths(JOB))
    assert {f"spec.tasks[].template.{path}" for path in pod_fields()} <= fields
    assert {"spec.minAvailable", "spec.plugins", "status.state.phase"} <= fields

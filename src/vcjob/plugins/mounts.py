"""What goes wrong where a plugin mounts a volume of its own into every container."""

from collections.abc import Iterator

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Job
from vcjob.plugins.base import Request
from vcjob.plugins.hosts import pod_spec
from vcjob.plugins.ports import containers_of


def mount_problems(request: Request, volume: str, mount_path: str, what: str) -> Iterator[Problem]:
    """The Job has a volume of the same name, or mounts something else at the same place.

    ``what`` is what the plugin mounts, as sentences call it.
    """
    plugin = str(request.path[-1])
    wrong_place = f"the plugin {plugin} mounts {what} at {mount_path} too"
    for position, claim in enumerate(request.job.spec.volumes):
        if claim.mount_path == mount_path:
            path: Path = ("spec", "volumes", position, "mountPath")
            yield Problem(wrong_place, path, "mount it elsewhere")
    for path in _template_places(request.job, mount_path):
        yield Problem(wrong_place, path, "mount it elsewhere")
    for position, task in enumerate(request.job.spec.tasks):
        volumes = pod_spec(task).get("volumes")
        for index, one in enumerate(volumes if isinstance(volumes, list) else ()):
            if isinstance(one, dict) and one.get("name") == volume:
                path = ("spec", "tasks", position, "template", "spec", "volumes", index, "name")
                same = f'the plugin {plugin} adds a volume of the same name "{volume}"'
                yield Problem(same, path)


def _template_places(job: Job, mount_path: str) -> Iterator[Path]:
    for position, task in enumerate(job.spec.tasks):
        for group in ("containers", "initContainers"):
            for index, container in enumerate(containers_of(task, group)):
                mounts = container.get("volumeMounts")
                for place, mount in enumerate(mounts if isinstance(mounts, list) else ()):
                    if isinstance(mount, dict) and mount.get("mountPath") == mount_path:
                        yield ("spec", "tasks", position, "template", "spec", group, index,
                               "volumeMounts", place, "mountPath")  # fmt: skip

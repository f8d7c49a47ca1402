"""The env plugin: every container knows the index of its pod. Source: plugins.md section 4."""

from vcjob.plugins.base import AddToPod, Plugin, Request
from vcjob.plugins.draft import PodDraft

_VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


def _pods(_: Request) -> AddToPod:
    return _add_index


def _add_index(pod: PodDraft) -> None:
    entries = [{"name": name, "value": str(pod.index)} for name in _VARIABLES]
    for container in pod.all_containers():
        container.add_env(entries)


PLUGIN = Plugin(
    name="env",
    help="Gives every container the index of its pod: VC_TASK_INDEX (and VK_TASK_INDEX).",
    pods=_pods,
)

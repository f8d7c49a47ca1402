"""What is promised of a Job whose pods beyond the minimum come last, told from its manifest."""

from owned import Slot

from vcjob.api.names import MINIMUM_FIRST
from vcjob.api.types import Object


def minimum_of(job: Object) -> set[Slot] | None:
    """The places that have to be filled, and at work or done, before all others.

    None if the Job does not ask for it, or has an order of start beside: who waits by that order
    has no part in the minimum.
    """
    tasks = job["spec"]["tasks"]
    asked = job["metadata"].get("annotations", {}).get(MINIMUM_FIRST) == "true"
    if not asked or any("dependsOn" in task for task in tasks):
        return None
    least, together = job["spec"]["minAvailable"], sum(task["minAvailable"] for task in tasks)
    sizes = {task["name"]: task["minAvailable"] if least >= together else 0 for task in tasks}
    left = least - sum(sizes.values())
    for task in tasks:
        more = max(min(left, task["replicas"] - sizes[task["name"]]), 0)
        sizes[task["name"]] += more
        left -= more
    return {(task, index) for task, size in sizes.items() for index in range(size)}

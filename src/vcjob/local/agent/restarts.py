"""Whether and when a container that ended starts again: pure.

Source of the rules: Kubernetes documentation, "Pod Lifecycle" (container restarts, restart policy,
crash loop back-off) and "Sidecar Containers".
"""

import msgspec

from vcjob.api.types import Object
from vcjob.local.agent.podphase import Role

FIRST_DELAY_SECONDS = 10.0
LONGEST_DELAY_SECONDS = 300.0
FORGET_AFTER_SECONDS = 600.0
"""A container that ran this long before it ended starts its back-off anew."""


def role_of(container: Object, *, init: bool) -> Role:
    """An init container that always restarts is a sidecar."""
    if not init:
        return Role.MAIN
    return Role.SIDECAR if container.get("restartPolicy") == "Always" else Role.INIT


def restarts(pod_policy: str, container: Object, role: Role, exit_code: int) -> bool:
    """Whether a container starts again after it ended with ``exit_code``.

    A policy of the container itself comes before the pod's, its rules before both. Init containers
    run again only after a failure.
    """
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if rule.get("action") == "Restart" and listed is (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or pod_policy
    if role is Role.INIT and policy == "Always":
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


class BackOff(msgspec.Struct, frozen=True):
    """How long a container waits before it starts again: not at all, then longer each time.

    ``first`` and ``longest`` are seconds; ``ends`` counts the ends so far.
    """

    first: float = FIRST_DELAY_SECONDS
    longest: float = LONGEST_DELAY_SECONDS
    ends: int = 0

    def after(self, ran_seconds: float) -> tuple["BackOff", float]:
        """After an end: the new back-off, and the seconds to wait before the next start."""
        ends = 0 if ran_seconds >= FORGET_AFTER_SECONDS else self.ends
        doublings = min(max(ends - 1, 0), 32)
        delay = min(self.first * 2**doublings, self.longest) if ends else 0.0
        return msgspec.structs.replace(self, ends=ends + 1), delay

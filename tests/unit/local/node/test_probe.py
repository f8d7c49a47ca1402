import errno

import pytest

from vcjob.local.node.messages import StartFailed
from vcjob.local.node.probe import Step, explain


@pytest.mark.parametrize(
    ("step", "number", "settings", "cure"),
    [
        (
            Step.USER_NAMESPACE,
            errno.ENOSPC,
            {"user.max_user_namespaces": "0"},
            "sysctl user.max_user_namespaces=15000",
        ),
        (Step.USER_NAMESPACE, errno.ENOSPC, {"user.max_user_namespaces": "9"}, "limit on namesp"),
        (
            Step.USER_NAMESPACE,
            errno.EPERM,
            {"kernel.unprivileged_userns_clone": "0"},
            "sysctl kernel.unprivileged_userns_clone=1",
        ),
        (Step.USER_NAMESPACE, errno.EPERM, {}, "seccomp=unconfined"),
        (Step.USER_NAMESPACE, errno.EINVAL, {}, "distribution's own kernel"),
        *(
            (
                step,
                number,
                {"kernel.apparmor_restrict_unprivileged_userns": "1"},
                "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            )
            for step in (Step.ID_MAPS, Step.NAMESPACES, Step.MOUNT)
            for number in (errno.EPERM, errno.EACCES)
        ),
        (Step.PROC, errno.EPERM, {}, "systempaths=unconfined"),
        (Step.NETWORK, errno.EOPNOTSUPP, {}, "modprobe -a veth nf_tables"),
    ],
)
def test_each_refusal_has_its_cure(
    step: Step, number: int, settings: dict[str, str], cure: str
) -> None:
    error = explain(StartFailed(step.value, number, ""), lambda name: settings.get(name, ""))
    assert step.value in str(error)
    assert cure in str(error)
    assert "\n" not in str(error)

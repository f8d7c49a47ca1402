"""Job volumes: admission.md section 2, rule 14."""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.api.validation import dns_1123_subdomain
from vcjob.core.checks.subject import Subject


def check_volumes(subject: Subject) -> Iterator[Problem]:
    """Each volume has its own mount path, and either an existing claim or one to be made."""
    first_of: dict[str, int] = {}
    for index, volume in enumerate(subject.job.spec.volumes):
        path = ("spec", "volumes", index)
        if volume.mount_path:
            first = first_of.setdefault(volume.mount_path, index)
            if first != index:
                yield Problem(
                    f"volumes[{index}] has the mountPath {volume.mount_path}, but so has "
                    f"volumes[{first}]",
                    (*path, "mountPath"),
                    "give each volume its own path",
                )
        if not volume.volume_claim_name:
            if volume.volume_claim is None:
                yield Problem(
                    f"volumes[{index}] names no claim",
                    path,
                    "give volumeClaimName (an existing claim) or volumeClaim (one to be made)",
                )
        elif volume.volume_claim is not None:
            yield Problem(
                f"volumes[{index}] has both volumeClaimName and volumeClaim",
                path,
                "give volumeClaimName to use an existing claim, or volumeClaim to have one made",
            )
        elif wrong := dns_1123_subdomain(volume.volume_claim_name):
            yield Problem(
                f'volumeClaimName must {wrong}, but is "{volume.volume_claim_name}"',
                (*path, "volumeClaimName"),
            )

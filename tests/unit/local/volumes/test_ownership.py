"""Who owns the files of volumes, and what others may do with them."""

import pytest

from vcjob.local.node.identity import IdMaps, IdRange
from vcjob.local.volumes.ownership import ownership

ONE = (IdRange(0, 1001, 1),)
MANY = (IdRange(0, 1001, 1), IdRange(1, 100000, 65536))
ALL = (IdRange(0, 0, 2**32 - 1),)
FS_GROUP = {"spec": {"securityContext": {"fsGroup": 2000}}}


@pytest.mark.parametrize(
    ("pod", "users", "privileged", "secret", "mode"),
    [
        ({}, ALL, True, True, 0o644),
        (FS_GROUP, ALL, True, True, 0o644),
        (FS_GROUP, ALL, True, False, 0o644),
        ({}, MANY, False, True, 0o644),
        (FS_GROUP, MANY, False, True, 0o644),
        # There is one user, who is root inside: ssh takes its keys only if they are its alone.
        ({}, ONE, False, True, 0o600),
        (FS_GROUP, ONE, False, True, 0o600),
        ({}, ONE, False, False, 0o644),
    ],
)
def test_files_are_as_open_as_ssh_and_the_pods_users_need(
    pod: dict[str, object], users: tuple[IdRange, ...], privileged: bool, secret: bool, mode: int
) -> None:
    owner = ownership(pod, IdMaps(users, users), privileged)
    assert owner.mode(0o644, secret=secret) == mode


def test_the_fs_group_may_read_what_only_the_owner_might() -> None:
    owner = ownership(FS_GROUP, IdMaps(ALL, ALL), privileged=True)
    assert (owner.group, owner.mode(0o600, secret=True)) == (2000, 0o640)

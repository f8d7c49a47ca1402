"""When this machine cannot hold pods: which step was refused, why, and what cures it.

There is no check ahead of time. Making the world is the check: its steps run in order, the first
that fails is named, and facts of the machine (kernel settings) tell which cure fits.
"""

import errno
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from vcjob.api.errors import VcjobError
from vcjob.local.node.messages import StartFailed


class MachineCannot(VcjobError):
    """This machine does not let vcjob make pods (exit code 4); the text names the cure."""


class Step(StrEnum):
    """The steps of making the world, in order; the value is how it reads in a sentence."""

    PASSAGES = "show the moved root what lies below directories of root"
    USER_NAMESPACE = "make a user namespace"
    ID_MAPS = "map user and group numbers into it"
    NAMESPACES = "make network, mount, pid and ipc namespaces"
    MOUNT = "make mounts private"
    PROC = "mount /proc"
    TMPFS = "mount a tmpfs"
    ETC = "copy /etc without its secrets"
    LAYERS = "put a private layer over /etc"
    NETWORK = "set up the pods' network"
    CALLS = "close the machine's keys to pods"
    SANDBOX = "start a sandbox"


ReadSetting = Callable[[str], str]
"""Reads a kernel setting by its sysctl name; "" where the kernel does not have it."""


def read_setting(name: str) -> str:
    """Read a kernel setting, ``user.max_user_namespaces`` for example."""
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return ""


def explain(failed: StartFailed, setting: ReadSetting = read_setting) -> MachineCannot:
    """The sentence for a step that failed: what, why, and the cure."""
    said = failed.words or (os.strerror(failed.number) if failed.number else "no reason given")
    return MachineCannot(
        f"this machine does not let vcjob {failed.step} ({said}): {_cure(failed, setting)}"
    )


def _cure(failed: StartFailed, setting: ReadSetting) -> str:
    refused = failed.number in (errno.EPERM, errno.EACCES)
    early = failed.step in (Step.USER_NAMESPACE, Step.ID_MAPS)
    if early and setting("user.max_user_namespaces") == "0":
        return "user namespaces are off; sudo sysctl user.max_user_namespaces=15000 turns them on"
    if early and setting("kernel.unprivileged_userns_clone") == "0":
        return (
            "user namespaces are kept for root; "
            "sudo sysctl kernel.unprivileged_userns_clone=1 opens them"
        )
    if refused and setting("kernel.apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor takes the rights of unprivileged user namespaces away, as Ubuntu does since "
            "23.10; sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 gives them back, "
            "or run vcjob as root"
        )
    if failed.number in (errno.ENOSPC, errno.EUSERS):
        return (
            "a limit on namespaces is reached; raise user.max_user_namespaces and "
            "user.max_net_namespaces with sysctl, or end other sandboxes"
        )
    if failed.number in (errno.EINVAL, errno.ENOSYS):
        return "its kernel was built without it; a distribution's own kernel (5.11 or newer) has it"
    if failed.step == Step.ID_MAPS and failed.words.startswith(("newuidmap", "newgidmap")):
        return "give your user a range in /etc/subuid and /etc/subgid of its own, or none"
    if failed.step == Step.PROC and refused:
        return (
            "vcjob runs inside a container that hides parts of /proc; start that container with "
            "--security-opt systempaths=unconfined (or --privileged)"
        )
    if failed.step == Step.LAYERS:
        return (
            "it needs Linux 5.11 or newer with overlayfs; sudo modprobe overlay loads it where it "
            "is a module"
        )
    if failed.step == Step.NETWORK:
        return (
            "the kernel needs veth and nf_tables; sudo modprobe -a veth nf_tables loads them, "
            "and inside a container /dev/net or the modules may be missing"
        )
    if refused:
        return (
            "a security policy (seccomp of a surrounding container, AppArmor or SELinux) forbids "
            "it; start that container with --security-opt seccomp=unconfined, or run vcjob outside"
        )
    return "run vcjob on a machine with a recent Linux kernel, or as root"

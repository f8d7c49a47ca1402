"""Runs an ssh server in a container of any kind: with a host key of its own, and as any user.

sshd has its root process become another user, and so calls setgroups(2). Where the container has
no other users (an ordinary user started vcjob on a machine without newuidmap) the kernel refuses
that call, as there are no groups either. Then sshd is told that its own user is root, and that the
call succeeded: there is nobody to become, and nothing to give up.
"""

import ctypes
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

SETGROUPS = {"x86_64": 116, "aarch64": 159}
"""The number of the system call (asm/unistd.h)."""

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_CALL_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ANSWER_ZERO = 0x7FFF0000, 0x00050000


class Instruction(ctypes.Structure):
    """``struct sock_filter`` (linux/filter.h)."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    """``struct sock_fprog`` (linux/filter.h)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction)))


def is_alone() -> bool:
    """Whether root is the only user that there is."""
    return Path("/proc/self/setgroups").read_text().strip() == "deny"


def answer_setgroups() -> None:
    """Let setgroups(2) do nothing and succeed, here and in what is started from here."""
    instructions = (Instruction * 4)(
        Instruction(LOAD_CALL_NUMBER, 0, 0, 0),
        Instruction(JUMP_IF_EQUAL, 0, 1, SETGROUPS[platform.machine()]),
        Instruction(RETURN, 0, 0, ANSWER_ZERO),
        Instruction(RETURN, 0, 0, ALLOW),
    )
    program = Program(len(instructions), instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


def make_sshd_root() -> None:
    """Give the user ``sshd`` root's number; the container's /etc is its own."""
    passwd = Path("/etc/passwd")
    others = [line for line in passwd.read_text().splitlines() if not line.startswith("sshd:")]
    passwd.unlink()  # it may be a link to the machine's
    passwd.write_text("\n".join([*others, "sshd:x:0:0::/run/sshd:/usr/sbin/nologin"]) + "\n")


def main() -> None:
    port = sys.argv[1] if len(sys.argv) > 1 else "22"
    host_key = f"{tempfile.mkdtemp()}/host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host_key], check=True)
    if os.getuid() == 0:
        # sshd locks its least trusted part up in there.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        if is_alone():
            make_sshd_root()
            answer_setgroups()
    options = (f"HostKey={host_key}", "PidFile=none", "UsePAM=no", "PasswordAuthentication=no")
    arguments = [word for option in options for word in ("-o", option)]
    sshd = "/usr/sbin/sshd"
    os.execv(sshd, [sshd, "-D", "-e", "-f", "/dev/null", "-p", port, *arguments])


if __name__ == "__main__":
    main()

"""Terminals of a container's own: opened inside, so that they have a name there, used from outside.

A terminal belongs to the instance of devpts that it was opened in. One of the machine's has no name
in a container, and tmux, screen, ssh and gpg ask for it. So whoever is about to become the program
opens one where it is, and sends the other end (the master) back over a socket
(``receiving_terminals.py``).

The terminal of a container itself is opened before there is a container, in an instance that
becomes the container's.
"""

import fcntl
import os
import socket
import stat
import struct
import termios

from vcjob.local.node import syscalls

PLACE = "/dev/pts"
_MULTIPLEXER = f"{PLACE}/ptmx"
_DEVICE = os.makedev(5, 2)
# ioctl_tty(2), which Python names since 3.13; numbers of x86 and ARM.
_SET_LOCK = 0x40045431  # TIOCSPTLCK
_OPEN_PEER = 0x5441  # TIOCGPTPEER: the terminal of a master, without a path


def become_terminal(control: int) -> None:
    """In the child: make standard streams a new terminal, which controls this session.

    Its master is sent over the socket ``control``. Raises OSError.
    """
    use_terminal(control)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def new_instance() -> None:
    """In a mount namespace of its own: an instance without terminals; raises OSError."""
    flags = syscalls.MS_NOSUID | syscalls.MS_NOEXEC
    syscalls.mount("devpts", PLACE, "devpts", flags, "newinstance,ptmxmode=0666,mode=620")


def use_terminal(control: int, owner: tuple[int, int] | None = None) -> None:
    """As ``become_terminal``, of no session yet; ``owner`` is the user and group it is given to."""
    no_controlling = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC
    master = os.open(_MULTIPLEXER, no_controlling | os.O_NOFOLLOW)
    if not is_master(master):  # the container has put something else there
        raise OSError(0, f"{_MULTIPLEXER} opens no terminals")
    fcntl.ioctl(master, _SET_LOCK, struct.pack("i", 0))
    slave = fcntl.ioctl(master, _OPEN_PEER, no_controlling)
    if owner:
        os.fchown(slave, *owner)
    with socket.socket(fileno=os.dup(control)) as connection:
        socket.send_fds(connection, [b"t"], [master])
    os.close(master)
    for stream in range(3):
        os.dup2(slave, stream)
    if slave > 2:
        os.close(slave)


def is_master(fd: int) -> bool:
    """Whether a descriptor is the master of a terminal."""
    found = os.fstat(fd)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == _DEVICE

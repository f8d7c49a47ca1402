"""The machine's /etc with its secrets covered, made once and shown to every container.

Each container could cover them itself; a dozen mounts a container would be a fifth of what its
start costs.
"""

import os
from pathlib import Path

from vcjob.local.node import syscalls
from vcjob.local.sandbox.etc_secrets import find_secrets


def etc_view(directory: str) -> str:
    """Where the view is, for a node with this directory (``NodeOptions.directory``)."""
    return os.path.join(directory, "etc")


def make_etc_view(directory: str) -> None:
    """Mount the view below the node's directory; raises OSError.

    Nobody but processes of the pods' world sees it there. It is not read-only yet: bubblewrap
    makes it so for each container.
    """
    view = etc_view(directory)
    empty_file, empty_directory = Path(directory, "empty-file"), Path(directory, "empty-directory")
    os.mkdir(view, 0o755)
    empty_file.touch(0o000)
    empty_directory.mkdir(0o000)
    syscalls.mount("/etc", view, None, syscalls.MS_BIND | syscalls.MS_REC)
    for secret in find_secrets("/etc"):
        cover = empty_directory if secret.directory else empty_file
        target = view + secret.path.removeprefix("/etc")
        syscalls.mount(str(cover), target, None, syscalls.MS_BIND)

"""Parts of volumes that containers mount (``subPath``): found, made, and kept as they are."""

import os
import shutil
import stat

from vcjob.local.sandbox.paths import open_below, remove_tree
from vcjob.local.volumes import atomic
from vcjob.local.volumes.objects import VolumeRefused
from vcjob.local.volumes.ownership import Ownership, make_directories, make_writable


def is_file(base: str, path: str) -> bool:
    """Whether a container gets a file there; where we may not look, a directory is expected."""
    try:
        fd = open_below(base, path)
    except (FileNotFoundError, PermissionError):
        return False
    except OSError as error:
        raise VolumeRefused(f"{path}: {error.strerror}") from error
    try:
        return not stat.S_ISDIR(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def make_directories_open_to_all(source: str, sub_path: str, owner: Ownership) -> None:
    """Make missing directories of a subPath, open to all of the pod's users like the volume.

    What lies below a directory that belongs to another of the pod's users only the node can reach:
    it makes those, when the container starts. Raises VolumeRefused.
    """
    done = ""
    for part in sub_path.split("/"):
        try:
            parent = open_below(source, done, os.O_RDONLY | os.O_DIRECTORY)
        except PermissionError:
            return
        except NotADirectoryError as error:
            raise VolumeRefused(f"subPath {sub_path}: {done} is not a directory") from error
        try:
            os.mkdir(part, dir_fd=parent)
            handle = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=parent)
            try:
                if stat.S_ISDIR(os.fstat(handle).st_mode):
                    make_writable(f"/proc/self/fd/{handle}", owner)
            finally:
                os.close(handle)
        except FileExistsError:
            pass
        except PermissionError:
            return
        finally:
            os.close(parent)
        done = f"{done}/{part}" if done else part


def keep_today(pod_directory: str, name: str, volume: str, owner: Ownership) -> str:
    """Keep the files of ``volume`` as they are today, below a path that it returns.

    The kernel binds only what still has a name, and a change takes the old files away. These are
    links to them, one directory for each state that was mounted in parts; they go with the pod.
    """
    current = atomic.current_directory(volume)
    kept = os.path.join(pod_directory, "parts", name, os.path.basename(current))
    if not os.path.isdir(kept):
        make_directories(os.path.dirname(kept), owner)
        remove_tree(f"{kept}.new")
        shutil.copytree(current, f"{kept}.new", copy_function=os.link)
        for folder, _, _ in os.walk(f"{kept}.new"):
            os.chown(folder, owner.user, owner.group)
        os.rename(f"{kept}.new", kept)
    return kept

"""What is mounted below a directory, read as the kernel tells it."""

import os

import pytest

from vcjob.local.node.unmounting import mounts_below

LINE = b"36 35 98:0 / %s rw,noatime master:1 - tmpfs tmpfs rw"


@pytest.mark.parametrize(
    ("mounted", "found"),
    [
        ([b"/", b"/pods", b"/pods/u"], []),
        ([b"/pods/u/a"], ["/pods/u/a"]),
        ([b"/pods/u/a", b"/pods/u/a/b", b"/pods/u/c"], ["/pods/u/a/b", "/pods/u/a", "/pods/u/c"]),
        ([b"/pods/u2/a", b"/elsewhere/pods/u/a"], []),
        ([rb"/pods/u/a\040b\011c\012d"], ["/pods/u/a b\tc\nd"]),
        ([rb"/pods/u/a\134040"], [r"/pods/u/a\040"]),  # a backslash, then digits
        ([b"/pods/u/a\rb"], ["/pods/u/a\rb"]),
        ([b"/pods/u/\xff"], [os.fsdecode(b"/pods/u/\xff")]),
    ],
)
@pytest.mark.parametrize("directory", ["/pods/u", "/pods/u/"])
def test_mounts_below_a_directory_innermost_first(
    mounted: list[bytes], found: list[str], directory: str
) -> None:
    mountinfo = b"".join(LINE % target + b"\n" for target in mounted)
    assert mounts_below(directory, mountinfo) == found

import errno
import socket

import pytest

from vcjob.controller.os_errors import words_of


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OSError(errno.EADDRINUSE, "error while attempting to bind on …"),
            "Address already in use",
        ),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "Name or service not known",
        ),
        (OSError("no number"), "no number"),
        (OSError(), "OSError"),
    ],
)
def test_only_what_the_system_says_is_told(error: OSError, words: str) -> None:
    assert words_of(error) == words

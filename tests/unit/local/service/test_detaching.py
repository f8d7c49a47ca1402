"""What a process that stays says of its start."""

import subprocess
import sys

TOLD = """
from pathlib import Path
from vcjob.local.service.detaching import Told, detach
def work(tell):
    tell(Told(3, "why it does not start"))
    return 3
print(detach(work, Path("/dev/full")))
"""


def test_it_is_heard_also_where_its_log_cannot_be_written() -> None:
    ended = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, check=True, text=True)
    assert ended.stdout == "Told(code=3, text='why it does not start')\n"

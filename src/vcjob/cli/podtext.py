"""How a pod's output and name are shown: pure functions from bytes and names to text.

Text from a pod is untrusted. It is never read as our own markup, and on a terminal nothing of it
passes but printable characters and colours: a pod must not move the cursor, change the title or
answer for the user.
"""

import re
import zlib
from collections.abc import Iterable

# ECMA-48: the control sequences that terminals obey. Only SGR (colours, bold) is let through.
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI …
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC … until their terminator
    r"|\x1b[ -/]*[0-~]?"  # other escapes
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)

COLOURS = (
    *("cyan", "green", "magenta", "yellow", "blue", "red"),
    *("bright_cyan", "bright_green", "bright_magenta", "bright_yellow", "bright_blue"),
)


def decode(line: bytes) -> str:
    """The text of one line of output; bytes that are not UTF-8 are shown as ``\\xNN``."""
    return line.decode("utf-8", "backslashreplace")


def for_terminal(text: str) -> str:
    """``text`` with nothing a terminal obeys except colours.

    Of a line that was overwritten by carriage returns (progress bars) the last state stays.
    """
    text = text.rstrip("\r")
    text = text.rsplit("\r", 1)[-1]
    kept = []
    position = 0
    for sequence in _SEQUENCE.finditer(text):
        kept.append(_CONTROL.sub(_visible, text[position : sequence.start()]))
        if _COLOUR.fullmatch(sequence[0]):
            kept.append(sequence[0])
        position = sequence.end()
    kept.append(_CONTROL.sub(_visible, text[position:]))
    return "".join(kept)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def short_pod_name(job: str, pod: str) -> str:
    """A pod's name without its Job's: ``worker-0`` of ``tensorflow-dist-mnist-worker-0``."""
    return pod.removeprefix(f"{job}-")


def colour_of(label: str) -> str:
    """The colour of a label: the same in every run, different for neighbouring indices."""
    name, _, index = label.rpartition("-")
    offset = zlib.crc32(name.encode()) % len(COLOURS)
    step = int(index) if index.isdecimal() else zlib.crc32(index.encode())
    return COLOURS[(offset + step) % len(COLOURS)]


def column_width(labels: Iterable[str], most: int = 32) -> int:
    """Width of the label column: the longest label, but not more than ``most`` characters."""
    return min(max((len(label) for label in labels), default=0), most)

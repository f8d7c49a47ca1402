"""What ConfigMaps and Secrets hold: base64 where it should be, each key once, and not too much.

Source: Kubernetes API reference, "ConfigMap" and "Secret": the values of an object together may not
be larger than 1 MiB, where those in base64 count as what they stand for.
"""

import binascii
from collections.abc import Mapping

from vcjob.api.kinds import CONFIG_MAP, SECRET, Kind
from vcjob.api.problems import Problem
from vcjob.api.types import Object

MOST_BYTES = 1024 * 1024
"""That the values of one object may have together."""

CONTENTS: Mapping[Kind, tuple[str, str]] = {
    CONFIG_MAP: ("data", "binaryData"),
    SECRET: ("stringData", "data"),
}
"""Where each kind has its values: as text, and as base64."""

_HINTS = {CONFIG_MAP: "write plain text under data", SECRET: "write plain text under stringData"}


def check_contents(obj: Object, kind: Kind) -> list[Problem]:
    """What is wrong with the values of a ConfigMap or Secret; other fields are not looked at."""
    plain_field, encoded_field = CONTENTS[kind]
    plain, encoded = _texts(obj, plain_field), _texts(obj, encoded_field)
    problems: list[Problem] = []
    sizes = {key: len(value.encode(errors="surrogatepass")) for key, value in plain.items()}
    for key, value in encoded.items():
        decoded = _decoded(value)
        if decoded is None:
            wrong = f'the value of "{key}" is not base64'
            problems.append(Problem(wrong, (encoded_field, key), _HINTS[kind]))
        elif key not in plain:
            sizes[key] = len(decoded)
        elif kind == CONFIG_MAP:
            twice = f'the key "{key}" is in data as well'
            problems.append(Problem(twice, (encoded_field, key), "a key stands in one of the two"))
    if (total := sum(sizes.values())) > MOST_BYTES:
        largest = max(sizes, key=lambda key: sizes[key])
        problems.append(
            Problem(
                f"the values have {total:,} bytes together; a {kind.kind} may not have more than "
                f"{MOST_BYTES:,}",
                (plain_field if largest in plain else encoded_field,),
                f'the largest value is that of "{largest}"; put large files on a volume',
            )
        )
    return problems


def _texts(obj: Object, field: str) -> Mapping[str, str]:
    found = obj.get(field)
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _decoded(text: str) -> bytes | None:
    try:
        return binascii.a2b_base64("".join(text.split()), strict_mode=True)
    except ValueError:
        return None

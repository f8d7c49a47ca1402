"""``$(VAR)`` in commands, variables and paths of volumes: pure.

Source: Kubernetes documentation, "Define Dependent Environment Variables".
"""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(VAR)``; ``$$`` is a dollar sign, a variable that is not known stays as it is."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else variables.get(name, found[0])

    return _REFERENCE.sub(value, text)


def unknown_variables(text: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names that ``text`` refers to and that are not known."""
    names = (found[1] for found in _REFERENCE.finditer(text))
    return tuple(name for name in names if name is not None and name not in variables)

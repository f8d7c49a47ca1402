"""How big the svc plugin's host lists become, computed without making them.

docs/compatibility.md row 9: a ConfigMap holds at most 1 MiB (Kubernetes documentation,
"ConfigMaps"), and Linux passes at most 128 KiB in one environment string (execve(2),
MAX_ARG_STRLEN).
"""

MOST_LIST_BYTES = 1024 * 1024
MOST_ENV_BYTES = 128 * 1024


def host_list_bytes(fixed: int, hosts: int) -> int:
    """Bytes of a list of ``hosts`` names, joined by one byte each.

    ``fixed`` is the length of a name without its index, which has no leading zeros.
    """
    return max(hosts * (fixed + 1) - 1, 0) + _digits_below(hosts)


def _digits_below(number: int) -> int:
    """How many digits 0, 1, …, number - 1 have together."""
    digits, first, width = 0, 0, 1
    while first < number:
        end = min(number, 10**width)
        digits += (end - first) * width
        first, width = end, width + 1
    return digits


def hosts_that_fit(fixed: int, room: int) -> int:
    """How many hosts a list of at most ``room`` bytes can have."""
    low, high = 0, room
    while low < high:
        middle = (low + high + 1) // 2
        if host_list_bytes(fixed, middle) <= room:
            low = middle
        else:
            high = middle - 1
    return low

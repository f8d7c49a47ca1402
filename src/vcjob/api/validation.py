"""What names, keys and values the Kubernetes API takes: one function a format.

Each function takes a text and answers with what is wrong with it (a phrase that follows "must"),
or an empty text if nothing is. Source: Kubernetes documentation, "Object Names and IDs", "Labels
and Selectors", and the API reference of the fields named below.
"""

import re
from collections.abc import Callable

from vcjob.api.duration import InvalidDuration, parse_duration

Check = Callable[[str], str]

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
CONFIG_MAP_KEY_LENGTH = 253
PORT_NAME_LENGTH = 15

_DNS_1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DNS_1123_SUBDOMAIN = re.compile(rf"{_DNS_1123_LABEL.pattern}(\.{_DNS_1123_LABEL.pattern})*")
_DNS_1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_QUALIFIED_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_CONFIG_MAP_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_ENV_NAME = re.compile(r"[ -<>-~]+", re.ASCII)
_PORT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)


def _too_long(text: str, most: int) -> str:
    length = len(text.encode())
    return f"have at most {most} characters (it has {length})" if length > most else ""


def dns_1123_label(text: str) -> str:
    """Names of containers, volumes, host names: a label of a DNS name."""
    if wrong := _too_long(text, LABEL_LENGTH):
        return wrong
    if _DNS_1123_LABEL.fullmatch(text):
        return ""
    return "consist of lower-case letters, digits and '-', with a letter or digit at both ends"


def dns_1123_subdomain(text: str) -> str:
    """Names of most objects: labels joined by dots."""
    if wrong := _too_long(text, SUBDOMAIN_LENGTH):
        return wrong
    if _DNS_1123_SUBDOMAIN.fullmatch(text):
        return ""
    return (
        "consist of lower-case letters, digits, '-' and '.', with a letter or digit at both ends "
        "and beside each '.'"
    )


def dns_1035_label(text: str) -> str:
    """Names of Services: a label that starts with a letter."""
    if wrong := _too_long(text, LABEL_LENGTH):
        return wrong
    if _DNS_1035_LABEL.fullmatch(text):
        return ""
    return "start with a lower-case letter, go on with those, digits and '-', and not end with '-'"


def qualified_name(text: str) -> str:
    """Keys of labels and annotations: a name of up to 63 characters, maybe behind ``prefix/``."""
    prefix, slash, name = text.rpartition("/")
    if slash and (wrong := dns_1123_subdomain(prefix)):
        return f"have a DNS name before '/', which must {wrong}"
    if not name:
        return "not be empty" if not slash else "have a name after '/'"
    if wrong := _too_long(name, LABEL_LENGTH):
        return wrong
    if _QUALIFIED_NAME.fullmatch(name):
        return ""
    return "consist of letters, digits, '-', '_' and '.', with a letter or digit at both ends"


def annotation_key(text: str) -> str:
    """Keys of annotations: as those of labels, but upper-case letters may stand before ``/``."""
    return qualified_name(text.lower())


def label_value(text: str) -> str:
    """Values of labels: empty, or like a name of up to 63 characters."""
    if "/" in text:
        return "not contain '/'"
    return qualified_name(text) if text else ""


def config_map_key(text: str) -> str:
    """Keys of ConfigMaps and Secrets, which become file names."""
    if wrong := _too_long(text, CONFIG_MAP_KEY_LENGTH):
        return wrong
    if text in (".", "..") or text.startswith(".."):
        return "not be '.' nor start with '..'"
    if _CONFIG_MAP_KEY.fullmatch(text):
        return ""
    return "consist of letters, digits, '-', '_' and '.'"


def env_name(text: str) -> str:
    """Names of environment variables: printable ASCII without '='."""
    if _ENV_NAME.fullmatch(text):
        return ""
    return "consist of printable ASCII characters other than '='"


def port_name(text: str) -> str:
    """Names of container ports: up to 15 lower-case letters, digits and single hyphens."""
    if wrong := _too_long(text, PORT_NAME_LENGTH):
        return wrong
    if _PORT_NAME.fullmatch(text) and any(character.isalpha() for character in text):
        return ""
    return (
        "consist of lower-case letters, digits and single '-' between them, with at least one "
        "letter"
    )


def relative_path(text: str) -> str:
    """Paths of files inside a volume: relative, and never upwards."""
    if text.startswith("/"):
        return "be a relative path"
    if ".." in text.split("/"):
        return "not contain '..'"
    return ""


def downward_path(text: str) -> str:
    """Paths of files that a projection makes: relative, not upwards, not starting with ``..``."""
    return relative_path(text) or ("not start with '..'" if text.startswith("..") else "")


def path_without_backsteps(text: str) -> str:
    """Paths on the node: never upwards."""
    return "not contain '..'" if ".." in text.split("/") else ""


def mount_path(text: str) -> str:
    """Where a volume appears in a container: without ':', which runtimes split at."""
    return "not contain ':'" if ":" in text else ""


def duration(text: str) -> str:
    """A Go duration such as ``10m`` or ``1h30m``."""
    try:
        parse_duration(text)
    except InvalidDuration:
        return "be a duration such as 90s, 10m or 1h30m"
    return ""


FORMATS: dict[str, Check] = {
    "dns-1123-label": dns_1123_label,
    "dns-1123-subdomain": dns_1123_subdomain,
    "dns-1035-label": dns_1035_label,
    "qualified-name": qualified_name,
    "annotation-key": annotation_key,
    "label-value": label_value,
    "config-map-key": config_map_key,
    "env-name": env_name,
    "port-name": port_name,
    "relative-path": relative_path,
    "downward-path": downward_path,
    "path-without-backsteps": path_without_backsteps,
    "mount-path": mount_path,
    "duration": duration,
}
"""The formats that the schema names."""

PATTERNS = {
    "dns-1123-label": _DNS_1123_LABEL.pattern,
    "dns-1123-subdomain": _DNS_1123_SUBDOMAIN.pattern,
    "mount-path": "[^:]*",
}
"""The formats that a CRD can ask for by itself: regular expressions of the whole text."""

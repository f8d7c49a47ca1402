import pytest

from vcjob.api.yaml_values import UnreadableScalar, read_key, read_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("y", "Y", "yes", "Yes", "YES", "true", "True", "on", "ON")),
        *((text, False) for text in ("n", "N", "no", "No", "false", "FALSE", "off", "Off")),
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        *((text, text) for text in ("yEs", "oN", "nULL", "none", "2001-01-01", "1:30", "0x", "_1")),
        ("12", 12),
        ("-3", -3),
        ("+4", 4),
        ("1_000", 1000),
        ("0755", 493),
        ("0o755", 493),
        ("08", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("1.0", 1),
        ("1e3", 1000),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e-1", 0.1),
        ("18446744073709551616", 18446744073709551616),
        ("1e999", "1e999"),
        ("1.2.3", "1.2.3"),
        ("9" * 5000, "9" * 5000),
        ("١", "١"),
    ],
)
def test_plain_scalars_mean_what_kubernetes_tools_read(text: str, value: object) -> None:
    read = read_scalar(text, plain=True, tag=None)
    assert (read, type(read)) == (value, type(value))


def test_quoted_scalars_are_texts() -> None:
    assert read_scalar("yes", plain=False, tag=None) == "yes"


@pytest.mark.parametrize(
    ("text", "tag", "value"),
    [
        ("5", "!", "5"),
        ("5", "tag:yaml.org,2002:str", "5"),
        ("5", "tag:yaml.org,2002:int", 5),
        ("5", "tag:yaml.org,2002:float", 5),
        ("yes", "tag:yaml.org,2002:bool", True),
        ("", "tag:yaml.org,2002:null", None),
    ],
)
def test_tags_decide_the_type(text: str, tag: str, value: object) -> None:
    assert read_scalar(text, plain=False, tag=tag) == value


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (".inf", None),
        ("-.INF", None),
        (".nan", None),
        ("x", "tag:yaml.org,2002:int"),
        ("aGk=", "tag:yaml.org,2002:binary"),
        ("x", "!mine"),
    ],
)
def test_what_json_cannot_hold_is_refused(text: str, tag: str | None) -> None:
    with pytest.raises(UnreadableScalar):
        read_scalar(text, plain=True, tag=tag)


@pytest.mark.parametrize(
    ("text", "key"), [("a", "a"), ("on", "true"), ("no", "false"), ("010", "8"), ("1.5", "1.5")]
)
def test_keys_are_texts(text: str, key: str) -> None:
    assert read_key(text, plain=True, tag=None) == key


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(UnreadableScalar):
        read_key("", plain=True, tag=None)

import pytest

from vcjob.api.validation import FORMATS

GOOD = {
    "dns-1123-label": ["a", "0", "a-b", "a" * 63],
    "dns-1123-subdomain": ["a", "a.b", "1.2-3.c", "a" * 63 + "." + "b" * 100],
    "dns-1035-label": ["a", "a1", "a-1"],
    "qualified-name": ["a", "A_b.c-d", "example.com/name", "a" * 63],
    "annotation-key": ["Example.com/Name", "name"],
    "label-value": ["", "a", "A_b.c-1", "a" * 63],
    "config-map-key": ["a", ".dockerconfigjson", "A_b-c.d", "a..b"],
    "env-name": ["A", "a.b", "1x", "a b", "-"],
    "port-name": ["http", "a-1", "1a"],
    "relative-path": ["a", "a/b", "..a"],
    "downward-path": ["a", "a/..b"],
    "path-without-backsteps": ["/a", "/a..b/c"],
    "mount-path": ["/a", "a"],
    "duration": ["10m", "0"],
}
BAD = {
    "dns-1123-label": ["", "A", "-a", "a-", "a.b", "a" * 64, "ä", "a\n"],
    "dns-1123-subdomain": ["", ".", "a..b", "A", "a_b", "a" * 254, "a\n"],
    "dns-1035-label": ["", "1a", "a.b", "a-", "a" * 64],
    "qualified-name": ["", "/a", "a/", "a/b/c", "-a", "a b", "a" * 64, "Ex_ample/a"],
    "annotation-key": ["", "a b"],
    "label-value": ["-a", "a/b", "a b", "a" * 64],
    "config-map-key": ["", ".", "..", "..a", "a/b", "a b", "a" * 254],
    "env-name": ["", "a=b", "ä", "a\n"],
    "port-name": ["", "123", "a--b", "A", "-a", "a" * 16],
    "relative-path": ["/a", "..", "a/../b"],
    "downward-path": ["..a", "/a", "../a"],
    "path-without-backsteps": ["/a/..", "../a"],
    "mount-path": ["/a:b"],
    "duration": ["", "ten"],
}


@pytest.mark.parametrize(("name", "text"), [(n, text) for n in GOOD for text in GOOD[n]])
def test_right_texts_pass(name: str, text: str) -> None:
    assert FORMATS[name](text) == ""


@pytest.mark.parametrize(("name", "text"), [(n, text) for n in BAD for text in BAD[n]])
def test_wrong_texts_are_told(name: str, text: str) -> None:
    assert FORMATS[name](text)


def test_every_format_is_tried() -> None:
    assert set(GOOD) == set(BAD) == set(FORMATS)

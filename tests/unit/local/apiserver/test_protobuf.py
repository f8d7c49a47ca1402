"""Protobuf bodies, written here field by field with the numbers of Kubernetes' generated.proto."""

import asyncio

import pytest
from served import MAPS, config_map, served

from vcjob.local.apiserver.protobuf import PROTOBUF, decode_protobuf
from vcjob.local.apiserver.status import Refused


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    names = field(1, api_version) + field(2, kind)
    return b"k8s\0" + field(1, names) + field(2, raw) + field(3, "") + field(4, "")


@pytest.mark.parametrize(
    ("raw", "options"),
    [
        (b"", {}),
        (field(1, 0), {"gracePeriodSeconds": 0}),
        (field(1, 30), {"gracePeriodSeconds": 30}),
        (field(1, -1), {"gracePeriodSeconds": -1}),
        (
            field(2, field(1, "u") + field(2, "7")),
            {"preconditions": {"uid": "u", "resourceVersion": "7"}},
        ),
        (field(3, 0), {"orphanDependents": False}),
        (field(3, 1), {"orphanDependents": True}),
        (field(4, "Foreground"), {"propagationPolicy": "Foreground"}),
        (field(5, "All"), {"dryRun": ["All"]}),
        (field(6, 0), {"ignoreStoreReadErrorWithClusterBreakingPotential": False}),
    ],
)
@pytest.mark.parametrize("api_version", ["v1", "batch/v1", "policy/v1"])
def test_options_of_a_deletion(raw: bytes, options: dict[str, object], api_version: str) -> None:
    decoded = decode_protobuf(body(api_version, "DeleteOptions", raw))
    assert decoded == {"apiVersion": api_version, "kind": "DeleteOptions", **options}


def test_a_field_that_is_not_known_is_not_dropped_but_refused() -> None:
    with pytest.raises(Refused) as refused:
        decode_protobuf(body("v1", "DeleteOptions", field(7, 1)))
    assert refused.value.code == 415


def test_options_in_protobuf_decide_what_a_deletion_does() -> None:
    async def scenario() -> list[int]:
        async with served() as ask:
            (made,) = await ask.made(MAPS, config_map("m"))
            codes = []
            for uid in ("another", made["metadata"]["uid"]):
                raw = field(2, field(1, uid))
                async with ask.session.delete(
                    f"{ask.url}{MAPS}/m",
                    data=body("v1", "DeleteOptions", raw),
                    headers={"Content-Type": PROTOBUF},
                ) as answer:
                    codes.append(answer.status)
            return codes

    assert asyncio.run(scenario()) == [409, 200]

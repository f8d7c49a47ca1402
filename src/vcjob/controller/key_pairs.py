"""The keys that plugins want: made once per Job, kept in the Job's Secret, found again there.

The Secret is the only memory that outlives a controller. What is stored in it wins over what this
controller remembers, so that pods of one Job never see two different pairs.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping

from vcjob.api.kinds import SECRET
from vcjob.core.supporting import Owned
from vcjob.plugins.base import KeyPair, KeyPairNeed

MakeKeyPair = Callable[[str], Awaitable[KeyPair]]
"""Makes a pair for an algorithm (``KeyPairNeed.algorithm``)."""


async def make_key_pair(algorithm: str) -> KeyPair:
    """A new pair; in a thread, because RSA takes a tenth of a second.

    Raises ValueError for an algorithm that is not ``rsa-2048`` or ``ed25519``.
    """
    return await asyncio.to_thread(_make, algorithm)


def stored_pairs(needs: Iterable[KeyPairNeed], owned: Owned) -> dict[str, KeyPair]:
    """The pairs that the Job's own Secrets hold, by the name of the need; whole pairs only."""
    found: dict[str, KeyPair] = {}
    for need in needs:
        data: Mapping[str, str] = (owned.get((SECRET, need.secret)) or {}).get("data") or {}
        private, public = _text(data, need.private_key), _text(data, need.public_key)
        if private and public:
            found[need.name] = KeyPair(private, public)
    return found


def _text(data: Mapping[str, str], key: str) -> str:
    try:
        return base64.b64decode(data.get(key) or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""  # somebody wrote something else there: as good as none


def _make(algorithm: str) -> KeyPair:
    # Imported here: it takes longer than all of vcjob's start, and few Jobs need keys.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
    match algorithm:
        case "rsa-2048":
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            form = serialization.PrivateFormat.TraditionalOpenSSL  # PKCS#1, as Volcano writes it
        case "ed25519":
            key = ed25519.Ed25519PrivateKey.generate()
            form = serialization.PrivateFormat.OpenSSH  # the only one that ssh reads
        case _:
            raise ValueError(f"there is no algorithm {algorithm!r} for keys")
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return KeyPair(private.decode(), public.decode() + "\n")

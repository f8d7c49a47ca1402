"""Which certificate is shown, and when another takes its place: decided from what is kept.

All replicas share one Secret, and any of them may be killed at any moment; so each step is one
write, and what comes next follows from the Secret and the time alone:

1. Long before the certificate expires the next one is made and kept beside it, its authority
   beside the old one. Every replica tells API servers of both authorities.
2. Once API servers have known both for a while, the next one takes the place of the certificate.
3. The old authority stays until it expires: replicas change over one after the other, and some API
   server may hear late.

At every moment API servers thus know who signed the certificate that they are shown.
"""

import ssl
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from vcjob.controller.certificates import (
    BACKDATED,
    Made,
    UnusableCertificate,
    as_pem,
    is_signed_by,
    load_chain,
    names_of,
    read_certificate,
    read_certificates,
)

if TYPE_CHECKING:
    from cryptography import x509

RENEWED_BEFORE = timedelta(days=60)
"""So long before its certificate expires the next one is made."""
SETTLED_AFTER = timedelta(minutes=10)
"""So long the next certificate waits at least, known to API servers."""
LAST_MOMENT = timedelta(days=1)
"""So long before the end the next one is taken even though API servers may not know it."""

Make = Callable[[], Made]
"""Makes a certificate that is valid from now on."""


class Kept(msgspec.Struct, frozen=True):
    """What the Secret holds, in PEM: a certificate, its key, who signed certificates of ours.

    ``next_certificate`` and ``next_key`` are empty unless another is about to take its place.
    """

    certificate: bytes
    key: bytes
    authorities: bytes
    next_certificate: bytes = b""
    next_key: bytes = b""


def kept_of(data: dict[str, bytes]) -> Kept:
    """What the decoded ``data`` of a Secret means; missing parts are empty."""
    return Kept(**{field: data.get(key, b"") for field, key in _KEYS.items()})


def data_of(kept: Kept) -> dict[str, bytes]:
    """The ``data`` of a Secret, not yet encoded; empty parts are left out."""
    data = {key: getattr(kept, field) for field, key in _KEYS.items()}
    return {key: value for key, value in data.items() if value}


_KEYS = {
    "certificate": "tls.crt",
    "key": "tls.key",
    "authorities": "ca.crt",
    "next_certificate": "next.crt",
    "next_key": "next.key",
}


def decide(
    kept: Kept | None, names: Collection[str], now: datetime, known: bool, make: Make
) -> Kept:
    """What is to be kept from now on; ``kept`` itself if nothing is to be done.

    ``names`` are those that API servers call us by; ``known`` tells that they have known all
    authorities in ``kept`` for a while.
    """
    if kept is None:
        made = make()
        return Kept(made.certificate, made.key, made.authority)
    has_next = is_usable(_next_of(kept), names, now)
    if not is_usable(kept, names, now):
        return _taken_over(kept, now) if has_next else _anew(kept, now, make)
    expires = read_certificate(kept.certificate).not_valid_after_utc
    if has_next:
        since = read_certificate(kept.next_certificate).not_valid_before_utc + BACKDATED
        settled = known and now >= since + SETTLED_AFTER
        return _taken_over(kept, now) if settled or now >= expires - LAST_MOMENT else kept
    if now < expires - RENEWED_BEFORE:
        if kept.next_certificate or kept.next_key:  # of no use, for whatever reason
            return msgspec.structs.replace(kept, next_certificate=b"", next_key=b"")
        return kept
    made = make()
    return msgspec.structs.replace(
        kept,
        authorities=_with(made.authority, kept, now),
        next_certificate=made.certificate,
        next_key=made.key,
    )


def is_usable(kept: Kept, names: Collection[str], now: datetime) -> bool:
    """Whether API servers that know the authorities take the certificate; raises OSError."""
    sound = _sound(kept.certificate, kept.key, kept.authorities)
    return (
        sound is not None
        and set(names) <= names_of(sound)
        and sound.not_valid_before_utc <= now < sound.not_valid_after_utc
    )


@lru_cache(maxsize=16)  # looked at every few seconds, and slow
def _sound(certificate: bytes, key: bytes, authorities: bytes) -> "x509.Certificate | None":
    """A certificate that fits its key and is signed by one of the authorities."""
    try:
        read = read_certificate(certificate)
        signers = read_certificates(authorities)
        load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate.rstrip() + b"\n" + key)
    except UnusableCertificate:
        return None
    return read if any(is_signed_by(read, signer) for signer in signers) else None


def expiry(kept: Kept) -> datetime:
    """When the certificate expires; raises UnusableCertificate."""
    return read_certificate(kept.certificate).not_valid_after_utc


def _next_of(kept: Kept) -> Kept:
    return Kept(kept.next_certificate, kept.next_key, kept.authorities)


def _taken_over(kept: Kept, now: datetime) -> Kept:
    return Kept(kept.next_certificate, kept.next_key, _with(b"", kept, now))


def _anew(kept: Kept, now: datetime, make: Make) -> Kept:
    made = make()
    return Kept(made.certificate, made.key, _with(made.authority, kept, now))


def _with(authority: bytes, kept: Kept, now: datetime) -> bytes:
    """The authorities that have not expired, and one more."""
    try:
        present = read_certificates(kept.authorities)
    except UnusableCertificate:
        present = []
    valid = [one for one in present if now < one.not_valid_after_utc]
    return as_pem(valid) + authority

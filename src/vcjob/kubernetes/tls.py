"""TLS towards an API server: whom we trust, and how we prove who we are."""

import ssl
from datetime import UTC, datetime

from vcjob.controller.certificates import UnusableCertificate, load_chain, read_certificate
from vcjob.kubernetes.credentials import Credential
from vcjob.kubernetes.errors import KubeconfigError
from vcjob.kubernetes.server import Server


def tls_context(server: Server, credential: Credential) -> ssl.SSLContext:
    """The TLS settings for a server; raises KubeconfigError for unusable certificates."""
    try:
        # PEM is ASCII; comments between certificates may be in any language.
        authority = credential.authority.encode("ascii", "replace").decode("ascii")
        context = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        raise KubeconfigError(
            f"the certificate authority of {server.name} is not a certificate in PEM"
        ) from error
    # Since Python 3.13 on by default; the authorities of many clusters lack an extension it wants.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if server.unverified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate:
        _load(context, credential, server.name)
    return context


def expired(credential: Credential) -> str:
    """That a client certificate has expired, as the end of a sentence; empty if it has not."""
    if not credential.certificate:
        return ""
    try:
        until = read_certificate(credential.certificate.encode()).not_valid_after_utc
    except UnusableCertificate:  # OpenSSL took it, and is less strict: nothing to add then
        return ""
    if until > datetime.now(UTC):
        return ""
    return f"; our client certificate expired on {until:%Y-%m-%d}: get a new kubeconfig file"


def _load(context: ssl.SSLContext, credential: Credential, name: str) -> None:
    try:
        load_chain(context, f"{credential.certificate}\n{credential.key}\n".encode())
    except UnusableCertificate as error:
        raise KubeconfigError(
            f"the client certificate of {name} does not fit its key, or is not PEM"
        ) from error

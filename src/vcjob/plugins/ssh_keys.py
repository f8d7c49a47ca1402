"""Whether the keys that a Job brings along fit together. Nothing here shows a key."""


class UnreadableKey(Exception):
    """A private key that cannot be read; the text says why."""


def fits(private: str, public: str) -> bool:
    """Whether ``public`` (as in ``id_rsa.pub``) belongs to ``private`` (PEM or OpenSSH form).

    Raises UnreadableKey.
    """
    # Imported here: it takes longer than all of vcjob's start, and few Jobs bring keys.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    text = private.encode()
    is_openssh = b"BEGIN OPENSSH PRIVATE KEY" in text
    load = serialization.load_ssh_private_key if is_openssh else serialization.load_pem_private_key
    try:
        key = load(text, password=None)
        line = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
    except TypeError as error:
        raise UnreadableKey("it has a passphrase, which nobody types in a pod") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnreadableKey("it is no private key in a form that ssh takes") from error
    return line.decode().split()[1] in public.split()  # options may stand before it

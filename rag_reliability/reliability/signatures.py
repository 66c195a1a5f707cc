"""Ed25519 signatures of publishers over a document's canonical bytes (RFC 8032)."""

from __future__ import annotations

import base64
import binascii
import json
import unicodedata
from pathlib import Path

from rag_reliability.records import Document, InputError

SIGNED_FIELDS = ("date", "source", "source_type", "text", "title", "url")
"""What a publisher vouches for; docno and the study's own marks are not the publisher's."""

_PURPOSE = b"rag-reliability document 1\n"


def canonical_bytes(document: Document) -> bytes:
    r"""The bytes that are signed: one purpose line, then the signed fields as ASCII JSON.

    ``SIGNED_FIELDS`` in NFC, keys sorted, no spaces, all beyond ASCII as ``\uXXXX``. So texts that
    differ in Unicode composition alone have the same bytes; nothing else is forgiven, and the
    purpose line keeps a signature for something else from counting here.
    """
    fields = {n: unicodedata.normalize("NFC", getattr(document, n)) for n in SIGNED_FIELDS}
    body = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return _PURPOSE + body.encode("ascii")


def sign_document(document: Document, private_key: bytes) -> str:
    """Detached signature in base64. private_key: the 32 raw bytes of an Ed25519 key.

    Raises: InputError for a key of another length.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if len(private_key) != 32:
        raise InputError(f"private key has {len(private_key)} bytes; expected 32")
    key = Ed25519PrivateKey.from_private_bytes(private_key)
    return base64.b64encode(key.sign(canonical_bytes(document))).decode("ascii")


def is_signed(document: Document, signature: str, public_key: bytes) -> bool:
    """Whether the key made the base64 signature over this document; False for a malformed one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = decoded(signature)
    if raw is None or len(raw) != 64:
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(public_key)
        key.verify(raw, canonical_bytes(document))
    except (InvalidSignature, ValueError):
        return False
    return True


def decoded(text: str) -> bytes | None:
    """Bytes of strict base64, or None."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def load_signatures(path: str | Path) -> dict[str, str]:
    """Signatures by docno, from a JSON object of base64 strings.

    Raises: InputError naming the file for what cannot be read or is not such an object.
    """
    path = Path(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(s, str) for s in found.values()):
        raise InputError(f"{path}: expected one JSON object of docno: signature in base64")
    return found

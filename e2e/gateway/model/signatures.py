"""Opaque fields that only the provider can make: signatures of thinking and thoughts, encrypted reasoning.

Each names the answer it was made for, so that a later request can be compared with it without any state.
"""

import base64
import binascii
import hashlib
import hmac
import json

SECRET = b"the scripted model's own"
MAC_BYTES = 16


def mac(kind, origin, content):
    return hmac.digest(SECRET, b"\0".join([kind.encode(), origin, content.encode()]), hashlib.sha256)[:MAC_BYTES]


def sign(kind, content, **origin):
    """A field of this kind for this content, which holds its origin."""
    held = json.dumps(origin, separators=(",", ":"), sort_keys=True).encode()
    return base64.b64encode(mac(kind, held, content) + held).decode()


def read(kind, content, signature):
    """The origin that a signature holds; None if the provider has not made it for this kind and content."""
    if not isinstance(signature, str):
        return None
    # Google's clients for Python give bytes back in the URL's alphabet.
    text = signature.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        origin = json.loads(data[MAC_BYTES:])
    except (binascii.Error, ValueError):
        return None
    return origin if hmac.compare_digest(data[:MAC_BYTES], mac(kind, data[MAC_BYTES:], content)) else None

"""Encodings, digests and UUIDs of a text."""

import base64, binascii, hashlib, hmac, html, json, sys, urllib.parse, uuid

DATA_ERROR = 65
NAMESPACES = {"dns": uuid.NAMESPACE_DNS, "url": uuid.NAMESPACE_URL, "oid": uuid.NAMESPACE_OID, "x500": uuid.NAMESPACE_X500}
DIGESTS = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b"]


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def unpadded(text):
    return text + "=" * (-len(text) % 4)


def decode(operation, text):
    """Returns the bytes, and refuses what is not wholly in the encoding."""
    compact = "".join(text.split())
    try:
        match operation:
            case "base64-decode":
                return base64.b64decode(unpadded(compact), validate=True)
            case "base64url-decode":
                return base64.b64decode(unpadded(compact), altchars="-_", validate=True)
            case "base32-decode":
                return base64.b32decode(compact + "=" * (-len(compact) % 8), casefold=True)
            case _:
                return bytes.fromhex(compact)
    except (binascii.Error, ValueError) as error:
        fail(f"the text is no {operation.split('-')[0]}: {error}")


def decoded(operation, text):
    raw = decode(operation, text)
    try:
        return {"result": raw.decode(), "bytes": len(raw)}
    except UnicodeDecodeError:
        return {"result": raw.hex(), "bytes": len(raw), "isHex": True}


def uuid_of(request):
    space = request.get("namespace", "url")
    try:
        return str(uuid.uuid5(NAMESPACES.get(space) or uuid.UUID(space), request.get("text", "")))
    except ValueError:
        fail(f"{space!r} is no namespace; use {', '.join(NAMESPACES)} or a UUID")


def answer(request):
    operation, text = request["operation"], request.get("text", "")
    raw = text.encode("utf-8", "surrogatepass")
    if operation in DIGESTS:
        return {"result": hashlib.new(operation, raw).hexdigest()}
    if operation.startswith("hmac-"):
        if not request.get("key"):
            fail(f"'key' is missing: {operation} needs one")
        return {"result": hmac.new(request["key"].encode(), raw, operation.removeprefix("hmac-")).hexdigest()}
    if operation.endswith("-decode") and operation.split("-")[0] in ("base64", "base64url", "base32", "hex"):
        return decoded(operation, text)
    return {"result": {
        "base64-encode": lambda: base64.b64encode(raw).decode(),
        "base64url-encode": lambda: base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "base32-encode": lambda: base64.b32encode(raw).decode(),
        "hex-encode": raw.hex,
        "url-encode": lambda: urllib.parse.quote(text, safe=""),
        "url-decode": lambda: urllib.parse.unquote(text),
        "html-encode": lambda: html.escape(text),
        "html-decode": lambda: html.unescape(text),
        "json-encode": lambda: json.dumps(text, ensure_ascii=False),
        "uuid5": lambda: uuid_of(request),
        "uuid4": lambda: str(uuid.uuid4()),
    }[operation]()}


def main():
    print(json.dumps(answer(json.load(sys.stdin))))


main()

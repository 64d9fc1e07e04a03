"""Runs inside the python image: the version, the modules that people need, and that nothing is compiled at start."""
import importlib
import sys

assert sys.version_info >= (3, 13), sys.version

MODULES = """
argparse array ast asyncio base64 bisect bz2 calendar cmath codecs collections concurrent.futures configparser contextlib
copy csv ctypes dataclasses datetime decimal difflib email enum fnmatch fractions functools glob graphlib gzip hashlib
heapq hmac html html.parser http.client importlib inspect io ipaddress itertools json keyword locale logging lzma math
mimetypes multiprocessing numbers operator os pathlib pickle platform plistlib pprint queue random re sched secrets select
shlex shutil signal sqlite3 ssl stat statistics string stringprep struct subprocess tarfile tempfile textwrap threading time
timeit tokenize tomllib traceback types typing unicodedata unittest urllib.parse urllib.request uuid warnings weakref
xml.etree.ElementTree xml.sax zipfile zlib zoneinfo
""".split()
for name in MODULES:
    module = importlib.import_module(name)
    cached = getattr(module, "__cached__", None)
    assert cached is None or __import__("os").path.exists(cached), f"{name} has no bytecode"

import csv, datetime, decimal, hashlib, io, json, os, pathlib, sqlite3, statistics, tempfile, zoneinfo

rows = list(csv.DictReader(io.StringIO("a,b\n1,2\n3,4\n")))
assert statistics.mean(float(row["a"]) for row in rows) == 2
assert json.loads(json.dumps({"ü": [1, None]})) == {"ü": [1, None]}
assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")
assert decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
noon = datetime.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
assert noon.utcoffset() == datetime.timedelta(hours=2)
assert sqlite3.connect(":memory:").execute("select sum(value) from json_each('[1,2]')").fetchone() == (3,)

assert (os.getuid(), os.getgid()) == (65532, 65532)
assert tempfile.gettempdir() == "/dev/shm"
for folder in ("/", "/etc", "/tmp", "/var/tmp", "/run"):
    try:
        pathlib.Path(folder, "x").touch()
    except OSError:
        pass
    else:
        raise SystemExit(f"{folder} can be written")
print("python:", sys.version.split()[0])

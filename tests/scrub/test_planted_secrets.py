"""Thirty secrets in odd places: none of them may survive, in whatever bytes the scrubbed file is made of."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
from kineto_files import frame, kernel, launched, op, write
from nsys_files import GLOBAL_PID, small

from warpline.scrub.file import check, scrub

# Written in halves, so that nobody takes them for real ones.
SECRETS = {
    "Hugging Face token": ("loaded with hf" + "_QwErTyUiOpAsDfGhJkLzXcVbNm", "QwErTyUiOpAsDfGhJkLzXcVbNm"),
    "GitHub token": ("gh" + "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5", "a1B2c3D4e5F6g7H8"),
    "key of a model's vendor": ("key sk" + "-proj-Zz9Yy8Xx7Ww6Vv5Uu4Tt3", "Zz9Yy8Xx7Ww6"),
    "AWS key id": ("AK" + "IAQ7X2M9P4R8T1V6Y3", "Q7X2M9P4R8T1V6Y3"),
    "AWS secret": ("AWS_SECRET_ACCESS_KEY=pP0/oO9iI8uU7yY6", "oO9iI8uU7yY6"),
    "bearer": ("Authorization: Bearer q1w2e3r4t5y6u7i8o9p0", "q1w2e3r4t5y6"),
    "password option": ("run --db-password correcthorse --fast", "correcthorse"),
    "password": ("password=hunter2goose", "hunter2goose"),
    "login in a URL": ("https://carol:s3same@git.acme-labs.example.co/x.git", "s3same"),
    "signed URL": ("https://store.acme-labs.co/b/k?X-Signature=deadbeefcafe77", "deadbeefcafe77"),
    "bucket": ("s3://acme-secret-bucket/models/merger.pt", "acme-secret-bucket"),
    "web token": ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl", "hbGciOiJIUzI1NiJ9"),
    "private key": (
        "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEA",
    ),
    "random key": ("Kq7Zt2Xw9Lp4Vn8Rb3Yc6Hd1Mf5Gs0Ja4Tu7E", "Kq7Zt2Xw9Lp4Vn8Rb3Yc6"),
    "home": ("/home/ada.lovelace/engine/train.py(12): main", "lovelace"),
    "home sorted by letter": ("/global/homes/w/wilhelmina/run.py(1): f", "wilhelmina"),
    "Mac's home": ("/Users/grace.hopper/x/y.py", "hopper"),
    "Windows' home": ("C:\\Users\\Margaret Hamilton\\apollo\\nav.py", "Margaret"),
    "inductor's folder": ("/tmp/torchinductor_katherinej/ab/cab.py", "katherinej"),
    "team's folder": ("/scratch/blackbriar/alpha/proj/train.py(3): step", "blackbriar"),
    "odd root": ("/blackbriar-llm/alpha/proj/train.py(3): step", "blackbriar-llm"),
    "e-mail": ("ask dorothy.vaughan@acme-labs.co", "vaughan"),
    "IP address": ("connecting to 10.31.7.254:29500", "10.31.7.254"),
    "IPv6 address": ("listening on fd12:3456:789a::17", "fd12:3456"),
    "MAC address": ("eth0 link/ether 9c:6b:00:a1:b2:c3", "9c:6b:00:a1:b2:c3"),
    "GPU": ("GPU-8c2b1f3e-5d4a-4b6c-9e8f-7a6b5c4d3e2f", "8c2b1f3e"),
    "machine in a cloud": ("on ip-172-31-9-88.ec2.internal now", "172-31-9-88"),
    "machine": ("HOSTNAME=zeppelin-gpu-17", "zeppelin-gpu-17"),
    "machine by its full name": ("rank 3 at trn07.hpc.acme-labs.org", "trn07"),
    "account": ("USER=annie.easley", "annie.easley"),
    "command line": ("python\0train.py\0--data\0operation-nightfall", "nightfall"),
    "environment": ("LANG=C\0PROJECT=operation-daybreak\0TERM=xterm\0SHLVL=2", "daybreak"),
    "environment on lines": ("A=1\nB=2\nC=3\nCODENAME=operation-sunrise\nD=5\n", "sunrise"),
}


def needles() -> list[str]:
    assert len(SECRETS) >= 30
    return [needle for _, needle in SECRETS.values()]


def survivors(raw: bytes) -> list[str]:
    """Which secrets the bytes still hold, plain or in any other spelling."""
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    spellings = {
        name: (
            needle.encode(),
            needle.encode("utf-16-le"),
            needle.encode("utf-16-be"),
            "".join(f"\\u{ord(char):04x}" for char in needle).encode(),
        )
        for name, (_, needle) in SECRETS.items()
    }
    return [name for name, forms in spellings.items() if any(form in raw for form in forms)]


def export_with(place: str, folder: Path) -> Path:
    export = small()
    texts = [text for text, _ in SECRETS.values()]
    if place == "StringIds that nothing refers to":
        for text in texts:
            export.string(text)
    elif place == "StringIds that rows refer to":
        for text in texts:
            export.range(1, 2, None, textId=export.string(text))
    elif place == "NVTX texts":
        for text in texts:
            export.range(1, 2, text)
    elif place == "error output":
        for text in texts:
            export.error_output(f"Traceback\n{text}\nRuntimeError: lost")
    elif place == "output":
        for text in texts:
            name = export.string("/tmp/nvidia/streams/pid_4321_stdout.log")
            export.add("ProcessStreams", globalPid=GLOBAL_PID, filenameId=name, contentId=export.string(text))
    elif place == "remarks":
        for text in texts:
            export.remark(text)
    elif place == "arguments":
        for number, text in enumerate(texts):
            export.option(f"PROCESS_0:ARGUMENT_{number}", text)
    elif place == "environment":
        for text in texts:
            export.option("PROCESS_0:ENVIRONMENT_VARIABLE", f"NOTE={text}")
        export.system("DeviceEnvironment", "\n".join(texts))
    path = export.write(folder / "export.sqlite")
    connection = sqlite3.connect(path)
    if place in ("blobs", "UTF-16"):
        connection.execute("CREATE TABLE ODD (id INTEGER, data BLOB)")
        encoding = "utf-8" if place == "blobs" else "utf-16-le"
        for number, text in enumerate(texts):
            raw = b"\x00\x01\x02" + text.encode(encoding) + b"\x00\x7f\x01"
            connection.execute("INSERT INTO ODD VALUES (?, ?)", (number, raw))
    elif place == "integer columns":
        for text in texts:
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, gridX) VALUES (1, ?)", (text,))
    elif place == "deleted rows":
        connection.execute("PRAGMA secure_delete=off")
        connection.execute("CREATE TABLE ODD (id INTEGER, value TEXT)")
        connection.executemany("INSERT INTO ODD VALUES (?, ?)", [(n, text * 40) for n, text in enumerate(texts)])
        connection.commit()
        connection.execute("DELETE FROM ODD")
    elif place == "tables without row numbers":
        connection.execute("CREATE TABLE ODD (id TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        connection.executemany("INSERT INTO ODD VALUES (?, ?)", [(f"k{n}", text) for n, text in enumerate(texts)])
    elif place == "definitions":
        comments = "\n".join(f"  -- {text}" for text in texts if "\n" not in text and "\0" not in text)
        connection.execute(f"CREATE TABLE ODD (id INTEGER,\n{comments}\n value TEXT)")
    connection.commit()
    connection.close()
    return path


PLACES = [
    "StringIds that nothing refers to",
    "StringIds that rows refer to",
    "NVTX texts",
    "error output",
    "output",
    "remarks",
    "arguments",
    "environment",
    "blobs",
    "UTF-16",
    "integer columns",
    "deleted rows",
    "tables without row numbers",
    "definitions",
]


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_survives_in_an_export(place: str, tmp_path: Path) -> None:
    path = export_with(place, tmp_path)
    assert survivors(path.read_bytes()), "nothing was planted"
    result = scrub(path)
    assert result.output is not None
    assert survivors(result.output.read_bytes()) == []
    assert check(result.output).leaks == ()


def test_no_secret_survives_in_a_packed_export(tmp_path: Path) -> None:
    plain = export_with("StringIds that rows refer to", tmp_path)
    packed = tmp_path / "export.sqlite.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    result = scrub(packed)
    assert result.output == tmp_path / "export.scrubbed.sqlite.gz"
    assert survivors(result.output.read_bytes()) == []


def trace_with(place: str, folder: Path) -> Path:
    texts = [text for text, _ in SECRETS.values()]
    events = [op("aten::mm", 0, 100, external=1), *launched("gemm", 10, 20, 10, 1)]
    if place == "header":
        return write(folder, events, metadata={"notes": texts, "deep": [{"er": texts}]}, traceName=texts[14])
    if place == "environment":
        return write(folder, events, metadata={"env": {f"V{number}": text for number, text in enumerate(texts)}})
    if place == "frames":
        events += [frame(text, 1 + number, 1, number, None) for number, text in enumerate(texts)]
    elif place == "arguments":
        events += [kernel("k", 1, 1, 9, note=text, nested={"deep": [text]}) for text in texts]
    elif place == "keys":
        events += [kernel("k", 1, 1, 9, **{text: 1}) for text in texts]
    path = write(folder, events)
    if place == "tail":
        document = json.loads(path.read_text())
        path.write_text(json.dumps({"traceEvents": document["traceEvents"], "notes": texts, "user_name": texts[14]}))
    return path


@pytest.mark.parametrize("place", ["header", "environment", "frames", "arguments", "keys", "tail"])
@pytest.mark.parametrize("form", ["plain", "escaped", "one line", "gz", "spoilt"])
def test_no_secret_survives_in_a_trace(place: str, form: str, tmp_path: Path) -> None:
    path = trace_with(place, tmp_path)
    text = path.read_text()
    if form == "escaped":
        # Every character of a text but those that JSON needs, as \uXXXX.
        for secret, _ in SECRETS.values():
            plain = json.dumps(secret)[1:-1]
            text = text.replace(plain, "".join(f"\\u{ord(char):04x}" for char in secret))
    elif form == "one line":
        text = json.dumps(json.loads(text), separators=(",", ":"))
    elif form == "spoilt":
        # An unescaped quotation mark in a name, as torch 2.13 writes it.
        text = text.replace('"aten::mm"', '"aten::"mm"', 1)
    path.write_text(text)
    if form == "gz":
        path = tmp_path / "trace.json.gz"
        path.write_bytes(gzip.compress(text.encode()))
    assert survivors(path.read_bytes()), "nothing was planted"
    result = scrub(path)
    assert result.output is not None
    raw = result.output.read_bytes()
    assert survivors(raw) == []
    assert check(result.output).leaks == ()
    if form != "spoilt":
        json.loads(gzip.decompress(raw) if form == "gz" else raw)

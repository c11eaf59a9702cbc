"""Sixty forms of secrets, and how bytes are searched for them. Written in pieces, so that nobody takes them for real ones."""

from __future__ import annotations

import base64
import gzip
import json
from urllib.parse import quote

_JOINED = {
    "AWS key id": ("AK|IAQ7X2M9P4R8T1V6Y3", "Q7X2M9P4R8T1V6Y3"),
    "AWS secret": ("AWS_SECRET_ACCESS_KEY=pP0/oO9iI8uU7yY6tT5rR4|eE3wW2qQ1aAsSdDfF", "oO9iI8uU7yY6tT5rR4"),
    "GitHub token": ("gh|p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5", "a1B2c3D4e5F6g7H8"),
    "GitHub fine-grained": ("github|_pat_11AAXYZQ0zVu8Ty2WsEdRfTg", "11AAXYZQ0zVu8Ty2"),
    "GitLab token": ("gl|pat-Xz9Wv8Ut7Sr6Qp5On4Ml", "Xz9Wv8Ut7Sr6"),
    "Hugging Face token": ("hf|_QwErTyUiOpAsDfGhJkLzXcVbNm", "QwErTyUiOpAsDf"),
    "model vendor's key": ("sk|-proj-Zz9Yy8Xx7Ww6Vv5Uu4Tt3", "Zz9Yy8Xx7Ww6"),
    "Slack token": ("xox|b-7391842650-qWeRtYuIoP", "7391842650-qWeRtYuIoP"),
    "Slack hook": ("https://hooks.slack.com/services/T0QQQZ/B0QQQY/XxYyZzQqWwEeRr", "XxYyZzQqWwEeRr"),
    "Stripe key": ("sk_|live_51HqLyjWDarjtT1zdp7dc", "51HqLyjWDarjtT1z"),
    "Google key": ("AI|zaSyDq7Rt2Zk9Lp4Vn8Rb3Yc6Hd1Mf5Gs0J", "SyDq7Rt2Zk9Lp4Vn8"),
    "npm token": ("npm|_a9B8c7D6e5F4g3H2i1J0k9L8m7N6o5P4q3R2", "a9B8c7D6e5F4g3H2"),
    "web token": ("ey|JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl", "JhbGciOiJIUzI1NiJ9"),
    "private key": (
        "-----BEGIN RSA PRIVATE| KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEA",
    ),
    "private key on one line": ("-----BEGIN EC PRIVATE| KEY-----\\nMHcCAQEEIIzXq7\\n-----END", "MHcCAQEEIIzXq7"),
    "bearer": ("Authorization: Bearer q1w2e3r4t5y6u7i8o9p0", "q1w2e3r4t5y6"),
    "basic": ("Authorization: Basic Y2Fyb2w6czNzYW1lb3Blbg==", "Y2Fyb2w6czNzYW1lb3Blbg"),
    "password option": ("run --db-password correcthorse --fast", "correcthorse"),
    "password": ("password=hunter2goose", "hunter2goose"),
    "password of letters": ('{"password": "lettersonlyzq"}', "lettersonlyzq"),
    "short option": ("mysql -u root -pMyS3kretQ11", "MyS3kretQ11"),
    "login in a URL": ("https://carol:s3sameopen@git.acme-labs.example.co/x.git", "s3sameopen"),
    "connection string": ("postgresql://svc_z:Tr0ub4dorZz@db7.acme-labs.co:5432/prod", "Tr0ub4dorZz"),
    "ODBC string": ("Server=sql9;Uid=sa;Pwd=ZebraQ4zzTop;", "ZebraQ4zzTop"),
    "Redis": ("redis://:RedisPassQ6z@cache:6379/0", "RedisPassQ6z"),
    "signed URL": ("https://store.acme-labs.co/b/k?X-Signature=deadbeefcafe77aa", "deadbeefcafe77aa"),
    "Azure key": ("AccountName=acct;AccountKey=Zm9vYmFycTI4Wm9vQmFy==", "Zm9vYmFycTI4Wm9vQmFy"),
    "bucket": ("s3://acme-skret-bukkit/models/merger.pt", "acme-skret-bukkit"),
    "random key": ("Kq7Zt2Xw9Lp4Vn8Rb3Yc6Hd1Mf5Gs0Ja4Tu7E", "Kq7Zt2Xw9Lp4Vn8Rb3Yc6"),
    "hexadecimal key": ("0f1e2d3c4b5a69788796a5b4c3d2e1f0", "0f1e2d3c4b5a69788796"),
    "random letters": ("qzxkvjwpfbmhgdrt", "qzxkvjwpfbmhgdrt"),
    "base64": ("YWxpY2U6aHVudGVyMnEzMS1zZWNyZXQ=", "YWxpY2U6aHVudGVyMnEz"),
    "base64 in capitals": ("MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U", "MFRGGZDFMZTWQ2LK"),
    "percent-encoded": ("token%3DZz%57%78EcRvTbYnUm%49kOl", "EcRvTbYnUm"),
    "nested JSON": ('{"a": "{\\"b\\": \\"nestedskretzq\\"}"}', "nestedskretzq"),
    "home": ("/home/ada.lovelace/engine/train.py(12): main", "lovelace"),
    "home with a space": ("/home/john zuckerfeld/proj/train.py", "zuckerfeld"),
    "home sorted by letter": ("/global/homes/w/wilhelmina/run.py(1): f", "wilhelmina"),
    "Mac's home": ("/Users/grace.hopperzq/x/y.py", "hopperzq"),
    "Windows' home": ("C:\\Users\\Margaret Hamilton\\apollo\\nav.py", "Margaret"),
    "file share": ("\\\\fileserverzq20\\share\\wilma\\a.py", "fileserverzq20"),
    "inductor's folder": ("/tmp/torchinductor_katherinej/ab/cab.py", "katherinej"),
    "team's folder": ("/scratch/blackbriar/alpha/proj/train.py(3): step", "blackbriar"),
    "e-mail": ("ask dorothy.vaughan@acme-labs.co", "vaughan"),
    "e-mail in Unicode": ("jürgen.müllerq15@acme.de", "müllerq15"),
    "IP address": ("connecting to 10.31.7.254:29500", "10.31.7.254"),
    "IPv6 address": ("listening on fd12:3456:789a::17", "fd12:3456"),
    "MAC address": ("eth0 link/ether 9c:6b:00:a1:b2:c3", "9c:6b:00:a1:b2:c3"),
    "GPU's UUID": ("GPU-8c2b1f3e-5d4a-4b6c-9e8f-7a6b5c4d3e2f", "8c2b1f3e"),
    "machine in a cloud": ("on ip-172-31-9-88.ec2.internal now", "172-31-9-88"),
    "machine": ("HOSTNAME=zeppelin-gpu-17", "zeppelin"),
    "machine by its full name": ("rank 3 at trn07.hpc.acme-labs.org", "trn07"),
    "account": ("USER=annie.easley", "easley"),
    "image": ("registry.acmeq36.io/team/img:1.2", "acmeq36"),
    "repository": ("git@github.com:acmeq29/merger.git", "acmeq29"),
    "command line": ("python\0train.py\0--data\0operation-nightfall", "nightfall"),
    "environment": ("LANG=C\0PROJECT=operation-daybreak\0TERM=xterm\0SHLVL=2", "daybreak"),
    "environment on lines": ("A=1\nB=2\nC=3\nCODENAME=operation-sunrizen\nD=5\n", "sunrizen"),
    "card": ("card 4929 7391 8426 5077 exp 11/29", "4929 7391 8426 5077"),
    "card without spaces": ("4929739184265077", "4929739184265077"),
    "telephone": ("+49 151 73918426", "73918426"),
    "social security number": ("SSN 078-05-1120", "078-05-1120"),
    "hidden in Unicode": ("pass\u200bwörd-gehéim\u202e-Ünïcödé", "gehéim"),
    "job": ("SLURM_JOB_NAME=skretprojq34", "skretprojq34"),
    "project": ("project_blackbriar_phase2", "blackbriar"),
    "address with underscores": ("node_10_31_19_188", "10_31_19_188"),
    "telephone with underscores": ("call_151_73918426", "73918426"),
    "social security number with underscores": ("id_078_05_1120", "078_05_1120"),
    "card with underscores": ("pay_4929_7391_8426_5077", "4929_7391_8426_5077"),
    "MAC with underscores": ("nic_9c_6b_00_a1_b2_c3", "9c_6b_00_a1_b2_c3"),
    "bus id": ("pci 00000000:3B:00.0 sriov", "3B:00.0"),
    "UUID without dashes": ("8c2b1f3e5d4a4b6c9e8f7a6b5c4d3e2f", "8c2b1f3e5d4a4b6c"),
    "MIG UUID": ("MIG-GPU-5d4a8c2b-1f3e/7/0", "5d4a8c2b"),
    "serial number": ("S/N 1654922006536", "1654922006536"),
    "bank account": ("DE89370400440532013000", "370400440532013000"),
    "bank account in groups": ("DE89 3704 0044 0532 0130 00", "3704 0044 0532"),
    "date of birth": ("born 1984-11-23", "1984-11-23"),
    "coordinates": ("52.520008,13.404954", "52.520008"),
    "Twilio key": ("SK0a1b2c3d4e5f60718293a4b5c6d7e8f9", "0a1b2c3d4e5f6071"),
    "SendGrid key": ("SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf", "ngeVfQFYQlKU0ufo"),
    "Discord token": ("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4", "MTk4NjIyNDgzNDcx"),
    "Telegram token": ("110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "AAHdqTcvCH1vGWJx"),
    "PyPI token": ("pypi-AgEIcHlwaS5vcmcCJDU3", "AgEIcHlwaS5vcmcC"),
    "Docker token": ("dckr_pat_Zq9Xw8Ev7Rb6Tn5Ym4", "Zq9Xw8Ev7Rb6"),
    "Vault token": ("hvs.CAESIJq9Xw8Ev7Rb6Tn5", "CAESIJq9Xw8Ev7"),
    "age key": ("AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6", "1QPZRY9X8GF2TVDW0"),
    "SSH key": ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq7 ops@vault7q", "AAAAIGq7"),
    "one-time password": ("otpauth://totp/Acme:bob?secret=JBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXP"),
    "wallet": ("0x4c0883a69102937d6231471b5dbb6204fe512961708279f2", "4c0883a69102937d"),
    "seed phrase": ("abandon ability zebra wagon velvet zealous", "zebra wagon velvet"),
    "cookie": ("Cookie: session=q8W7e6R5t4Y3; csrftoken=Zx9Cv8", "q8W7e6R5t4Y3"),
    "SAS": ("https://x.blob.core.windows.net/c?sig=Q7d8%2FZ9a0B&se=2031-01-01", "Q7d8%2FZ9a0B"),
    "Windows account": ("ACMECORP\\hedwig.k", "hedwig"),
    "cluster job": ("slurm-job_7739184_array_17.out", "7739184"),
    "Kubernetes pod": ("trainer-zeppelin-7d9f8b6c5-x2k4q", "7d9f8b6c5"),
    "customer in a class": ("ZeppelinBankFraudModel", "Zeppelin"),
    "customer in capitals": ("ZEPPELIN_BANK_LAYER", "ZEPPELIN"),
    "customer in a namespace": ("zeppelinbank::fraud::forward", "zeppelinbank"),
    "customer split by points": ("z.e.p.p.e.l.i.n", "z.e.p.p.e.l.i.n"),
    "customer in leetspeak": ("z3pp3l1n_b4nk", "z3pp3l1n"),
    "commit": ("built from 3f9c2ab7e1d4", "3f9c2ab7e1d4"),
    "weights and biases": ("wandb.ai/zeppelin/fraud/runs/3kd9x2q1", "3kd9x2q1"),
    "dataset": ("/data/patients/mrn_00482913.dcm", "00482913"),
    "escape sequence": ("\x1b]8;;http://intranet.zeppelin/\x07x", "intranet.zeppelin"),
    "Cyrillic": ("секретный-проект", "секретный"),
    "Chinese": ("项目代号猎鹰", "猎鹰"),
    "wide digits": ("４９２９７３９１８４２６５０７７", "４９２９７３９１"),
    "roman": ("password is: opensesamezq!", "opensesamezq"),
}
FORMS = {name: (text.replace("|", ""), needle) for name, (text, needle) in _JOINED.items()}
"""Text as it is planted, and the part of it that must not survive."""
NUMBERS = (4929739184265077, 73918426507735)
"""Numbers: a card, and another that no id of a profile reaches."""


def texts() -> list[str]:
    """All planted texts; those that SQL or a file of JSON cannot hold in this place are left out by the caller."""
    return [text for text, _ in FORMS.values()]


def survivors(raw: bytes) -> list[str]:
    """Which secrets the bytes still hold, plain or in another encoding."""
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    folded = raw.lower()
    found = [name for name, (_, needle) in FORMS.items() if any(form in raw for form in _encodings(needle))]
    found += [name for name, (_, needle) in FORMS.items() if needle.lower().encode() in folded and name not in found]
    return found + [str(number) for number in NUMBERS if any(form in raw for form in _spelt(number))]


def _encodings(text: str) -> list[bytes]:
    plain = text.encode()
    forms = [
        plain,
        text.encode("utf-16-le"),
        text.encode("utf-16-be"),
        plain.hex().encode(),
        quote(text, safe="").encode(),
    ]
    forms.append(json.dumps(text)[1:-1].encode())
    forms.append("".join(f"\\u{ord(char):04x}" for char in text).encode())
    # The middle of the text in base64, at each of the three alignments.
    forms += [base64.b64encode(b"\0" * lead + plain)[4 * bool(lead) : -4] for lead in range(3)]
    return [form for form in forms if len(form) >= 5]


def _spelt(number: int) -> list[bytes]:
    return [str(number).encode(), number.to_bytes(8, "big"), number.to_bytes(8, "little")]

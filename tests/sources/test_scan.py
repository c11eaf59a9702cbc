"""The two scanners on small traces: the answers worked out by hand, json as a third opinion, damage of all kinds."""

from __future__ import annotations

import gzip
import json
import zlib
from decimal import Decimal
from pathlib import Path

import pytest
from scan_checks import both, by_json, decoded, difference, scan_text
from scan_samples import GOOD, ILLEGAL, OF_2021, TODAY, in_layouts, trace_of

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.kineto import native, python_scan
from warpline.sources.kineto.arguments import read_arguments
from warpline.sources.kineto.events import FIELDS, MISSING, RawEvents
from warpline.sources.kineto.stream import scan_file

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(params=[64, 256 << 10], ids=["blocks", "one-by-one"], autouse=True)
def block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small traces must reach the block decoder, too."""
    monkeypatch.setattr(python_scan, "BLOCK", request.param)
    monkeypatch.setattr(python_scan, "SMALL_BLOCK", min(request.param, 64))


def one(event: bytes, folder: Path) -> dict[str, object]:
    """The event as read between two good ones, so that each scanner meets it in the middle of its way."""
    events = both(trace_of(GOOD, event, GOOD), folder)
    assert len(events) == 3
    return decoded(events)[1]


def test_todays_layout(tmp_path: Path) -> None:
    events = both(TODAY, tmp_path)
    assert bytes(events.phase) == b"XXsiM"
    assert events.time_ns.tolist() == [
        6187519811405321,
        6187519811500000,
        6187519811410100,
        6187519811411500,
        6187519811405321,
    ]
    assert events.duration_ns.tolist() == [12053, 960, MISSING, MISSING, MISSING]
    assert events.categories == ["cpu_op", "kernel", "ac2g", "cpu_instant_event"]
    assert events.category.tolist() == [0, 1, 2, 3, -1]
    assert events.labels == ["730", "0", "7", '"Spans"', '""']
    assert events.process.tolist() == [0, 1, 0, 0, 3]
    assert events.thread.tolist() == [0, 2, 0, 0, 4]
    assert events.fields["grid"].rows.tolist() == [1]
    assert events.fields["grid"].values.tolist() == [[1056, 1, 1]]
    assert events.fields["Bytes"].values.tolist() == [-512]
    assert events.texts[int(events.fields["Input Dims"].values[0])] == "[[67108864], []]"
    assert json.loads(events.texts[int(events.fields["labels"].values[0])]) == "café 🚀"
    assert events.header["traceName"] == "/tmp/trace.json"
    assert events.header["baseTimeNanoseconds"] == 1759449622000000000
    assert (events.skipped, events.truncated, events.notes) == (0, False, [])
    assert events.bytes_read == len(TODAY)


def test_layout_of_2021_has_whole_microseconds_and_strings_for_threads(tmp_path: Path) -> None:
    events = both(OF_2021, tmp_path)
    assert events.time_ns[0] == 1621401187223005000
    assert events.labels == ["24572", '"24572"', "0", '"stream 7"']
    assert events.fields["stream"].values.tolist() == [7]
    assert events.fields["bytes"].values.tolist() == [12]
    assert events.fields["grid"].values.tolist() == [[32, 16, 1]]
    assert events.fields["external id"].values.tolist() == [1340]
    assert decoded(events) == by_json(OF_2021)


@pytest.mark.parametrize("layout", in_layouts(TODAY))
def test_layout_agrees_with_json(layout: str, tmp_path: Path) -> None:
    text = in_layouts(TODAY)[layout]
    events = both(text, tmp_path)
    assert decoded(events) == by_json(text)
    if layout != "bare list":
        assert events.header["displayTimeUnit"] == "ms"
        assert events.header["deviceProperties"][0]["name"] == "NVIDIA H200"
    assert not events.truncated


@pytest.mark.parametrize(
    ("number", "ns"),
    [
        (b"0", 0),
        (b"-0.0", 0),
        (b"1", 1000),
        (b".5", 500),
        (b"0.5", 500),
        (b"0.05", 50),
        (b"-2.5", -2500),
        (b"12.3456789", 12345),
        (b"12.", 12000),
        (b'"12.5"', 12500),
        (b"1.5e3", 1500000),
        (b"15E-4", 1),
        (b"1e-400", 0),
        (b"1e400", MISSING),
        (b"1e99999999999999999999", MISSING),
        (b"0e99999999999999999999", 0),
        (b"1713800000000000.123", 1713800000000000123),
        (b"9223372036854775.807", 9223372036854775807),
        (b"9223372036854775.808", MISSING),
        (b"-9223372036854775.807", -9223372036854775807),
        (b"99999999999999999999999", MISSING),
        (b"00000000000000000000000000012.5", 12500),
        (b"0.000000000000000000001e21", 1000),
        (b"1" * 5000, MISSING),
        (b"inf", MISSING),
        (b"NaN", MISSING),
        (b"null", MISSING),
        (b"true", MISSING),
        (b"1x", MISSING),
        (b"1e", MISSING),
        (b"--1", MISSING),
        (b'""', MISSING),
        (b'" 1"', MISSING),
        (b"[1]", MISSING),
        (b'{"a":1}', MISSING),
    ],
)
def test_times_are_exact(number: bytes, ns: int, tmp_path: Path) -> None:
    events = both(trace_of(GOOD, b'{"ph":"X","ts":' + number + b',"dur": ' + number + b" }", GOOD), tmp_path)
    assert events.time_ns.tolist()[1] == ns
    assert events.duration_ns.tolist()[1] == ns
    assert events.skipped == 0


def test_numbers_of_every_length_are_exact(tmp_path: Path) -> None:
    digits = "1234567890123456789"
    numbers = [f"{digits[:whole]}.{digits[:places]}" for whole in range(1, 17) for places in range(12)]
    numbers += [f"-{number}" for number in numbers]
    texts = [b'{"ph":"X","ts":%b,"args":{"stream":%b}}' % (number.encode(), number.encode()) for number in numbers]
    events = both(trace_of(*texts), tmp_path)
    assert events.time_ns.tolist() == [int(Decimal(number) * 1000) for number in numbers]
    assert events.fields["stream"].values.tolist() == [int(Decimal(number)) for number in numbers]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (b"7", 7),
        (b"-1", -1),
        (b"4294967295", 4294967295),
        (b"9223372036854775807", 9223372036854775807),
        (b"9223372036854775808", None),
        (b"-9223372036854775807", -9223372036854775807),
        (b"-9223372036854775808", None),
        (b'"12"', 12),
        (b'"0x1f"', None),
        (b'"1\\u0032"', None),
        (b"3.99", 3),
        (b"-3.99", -3),
        (b"1e2", 100),
        (b"9007199254740993.5", 9007199254740993),
        (b"null", None),
        (b"false", None),
        (b"inf", None),
        (b"[7]", None),
        (b"{}", None),
        (b'"default"', None),
    ],
)
def test_integer_arguments(value: bytes, kept: int | None, tmp_path: Path) -> None:
    event = one(b'{"ph":"X","args":{"a":1,"stream":' + value + b',"b":[{"c":[]}]}}', tmp_path)
    assert event["args"] == ({} if kept is None else {"stream": kept})


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (b"[1,2,3]", [1, 2, 3]),
        (b"[ 1 ,\n2 , 3 ]", [1, 2, 3]),
        (b'["1","2",3.0]', [1, 2, 3]),
        (b'"[1, 2, 3]"', [1, 2, 3]),
        (b'"[1,\\t2, 3]"', None),
        (b'"[\\"1\\", 2, 3]"', None),
        (b"[1,2]", None),
        (b"[1,2,3,4]", None),
        (b"[1,2,[3]]", None),
        (b'["1,2",3]', None),
        (b'["12,34",5]', None),
        (b"[1,,3]", None),
        (b"[]", None),
        (b"7", None),
        (b"[9223372036854775808,1,1]", None),
    ],
)
def test_triples(value: bytes, kept: list[int] | None, tmp_path: Path) -> None:
    event = one(b'{"ph":"X","args":{"grid":' + value + b"}}", tmp_path)
    assert event["args"] == ({} if kept is None else {"grid": kept})


@pytest.mark.parametrize(
    ("raw", "label"),
    [
        (b"730", "730"),
        (b"-0", "0"),
        (b'"stream 7"', '"stream 7"'),
        (b'"stream\\u00207"', '"stream 7"'),
        (b'"a\\"b"', r'"a\"b"'),
        (b'"caf\\u00e9"', '"café"'),
        (b"1.50", "1.50"),
        (b"null", "null"),
        (b"[1, 2]", "[1, 2]"),
        (b"123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_labels_have_one_spelling(raw: bytes, label: str, tmp_path: Path) -> None:
    event = one(b'{"ph":"X","tid":' + raw + b"}", tmp_path)
    assert event["tid"] == label


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (rb"plain", "plain"),
        (rb"\"\\\/\b\f\n\r\t", '"\\/\b\f\n\r\t'),
        (rb"\u0041\u00e9\u20ac", "Aé€"),
        (rb"\ud83d\ude80", "🚀"),
        (rb"\ud83d", "\ufffd"),
        (rb"\ude80\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\u12", r"\u12"),
        (rb"\x41 C:\dev", r"\x41 C:\dev"),
        (rb"\\u0041", r"\u0041"),
        ("naïve 漢字".encode(), "naïve 漢字"),
        (b"\xff\xed\xa0\x80", "\ufffd" * 4),
        (b"", ""),
        (b"x" * 40 + rb"\"" + b"y" * 40, "x" * 40 + '"' + "y" * 40),
    ],
)
def test_names_are_decoded_forgivingly(body: bytes, name: str, tmp_path: Path) -> None:
    assert one(b'{"ph":"X","name":"' + body + b'"}', tmp_path)["name"] == name


def test_spellings_of_one_string_share_a_code(tmp_path: Path) -> None:
    first, second = b'{"ph":"X","cat":"A","name":"A"}', rb'{"ph":"X","cat":"\u0041","name":"\u0041"}'
    events = both(trace_of(first, second, first), tmp_path)
    assert events.names == ["A"]
    assert events.name.tolist() == events.category.tolist() == [0, 0, 0]


def test_the_last_of_repeated_keys_counts(tmp_path: Path) -> None:
    event = one(
        b'{"ph":"B","ph":"X","name":"a","name":5,"ts":1,"ts":null,"cat":1,"cat":"c","args":{"device":1},'
        b'"args":{"stream":7,"stream":8,"correlation":1,"correlation":null}}',
        tmp_path,
    )
    assert event == {
        "ph": "X",
        "cat": "c",
        "name": None,
        "pid": None,
        "tid": None,
        "ts": None,
        "dur": None,
        "args": {"stream": 8},
    }


def test_arguments_that_are_no_object_count_as_absent(tmp_path: Path) -> None:
    events = both(
        trace_of(GOOD, b'{"ph":"X","args":{"stream":1},"args":[1]}', b'{"ph":"i","args":null}', GOOD), tmp_path
    )
    assert (events.args_offset[1], events.args_length[1], events.args_offset[2]) == (-1, 0, -1)
    assert events.fields["stream"].rows.tolist() == [0, 3]


def test_other_values_where_strings_belong(tmp_path: Path) -> None:
    event = one(b'{"ph":"i","cat":null,"name":["a"],"unknown":{"ph":"Y"},"s":"t"}', tmp_path)
    assert [event[key] for key in ("ph", "cat", "name")] == ["i", None, None]
    assert one(b'{"ph":"async"}', tmp_path)["ph"] == "a"


def test_a_key_spelled_with_escapes_is_not_known(tmp_path: Path) -> None:
    assert one(rb'{"ph":"X","n\u0061me":"n","args":{"str\u0065am":7}}', tmp_path)["args"] == {}


@pytest.mark.parametrize("event", [b"{}", b'{"ph":1}', b'{"ph":""}', rb'{"\u0070h":"X","name":"n"}'])
def test_events_without_a_phase_take_no_room(event: bytes, tmp_path: Path) -> None:
    assert [found["ph"] for found in decoded(both(trace_of(GOOD, *[event] * 1000, GOOD), tmp_path))] == ["X", "X"]
    assert [found["ph"] for found in decoded(both(trace_of(event, event, GOOD), tmp_path))] == [None, "X"]


def test_nested_arguments_called_args_do_not_confuse_offsets(tmp_path: Path) -> None:
    text = trace_of(GOOD, b'{"ph":"X","x":{"args":{"stream":1}},"args":{"args":{"a":1},"stream":2}}', GOOD)
    events = both(text, tmp_path)
    raws = [text[at : at + length] for at, length in zip(events.args_offset, events.args_length, strict=True)]
    assert raws[1] == b'{"args":{"a":1},"stream":2}'
    assert raws[0] == raws[2] == b'{"stream":7,"grid":[1,2,3]}'


@pytest.mark.parametrize("broken", ILLEGAL)
def test_what_torch_writes_and_json_refuses_costs_at_most_one_event(broken: bytes, tmp_path: Path) -> None:
    text = trace_of(GOOD, broken, GOOD, GOOD)
    events = both(text, tmp_path)
    assert len(events) + events.skipped == 4
    assert [event for event in decoded(events) if event["name"] == "good"] == [by_json(trace_of(GOOD))[0]] * 3
    assert events.first_skipped == (text.index(broken) if events.skipped else -1)
    assert events.header["traceName"] == "t.json"
    assert not events.truncated


def test_unescaped_quotes_skip_the_event_and_newlines_do_not(tmp_path: Path) -> None:
    events = both(trace_of(*ILLEGAL, GOOD), tmp_path)
    assert events.names == [
        "two\nlines",
        "bell \x07 and nul \x00",
        "C:\\dev\\pytorch",
        "Memcpy",
        "half \ufffd pair",
        "not utf-8: \ufffd\ufffd",
        "trailing comma",
        "good",
    ]
    assert events.skipped == 4


def test_a_malformed_last_event_does_not_cost_the_tail(tmp_path: Path) -> None:
    for ending in (b'],"traceName":"t"}', b"\n ] }\n", b"]"):
        text = b'{"traceEvents":[' + GOOD + b"," + ILLEGAL[0] + ending
        events = both(text, tmp_path)
        assert (len(events), events.skipped, events.truncated) == (1, 1, False)


def test_every_truncation_keeps_the_events_before_it(tmp_path: Path) -> None:
    text = trace_of(GOOD, GOOD)
    starts = [text.index(GOOD) + index * (len(GOOD) + 2) for index in range(2)]
    for end in range(starts[0], len(text) - len(b'],"traceName":"t.json"}')):
        events = both(text[:end], tmp_path)
        assert len(events) == sum(start + len(GOOD) <= end for start in starts)
        assert events.truncated
        assert events.skipped == 0


def test_events_without_commas_and_with_too_many(tmp_path: Path) -> None:
    events = both(b"[" + GOOD + GOOD + b",,\x00," + GOOD + b",]", tmp_path)
    assert (len(events), events.skipped, events.truncated) == (3, 0, False)


def test_rubbish_between_events(tmp_path: Path) -> None:
    events = both(b"[" + GOOD + b', null, "x", 5, ' + GOOD + b"]", tmp_path)
    assert (len(events), events.skipped) == (2, 1)


def test_empty_array_and_empty_event(tmp_path: Path) -> None:
    assert len(both(b'{"traceEvents":[]}', tmp_path)) == 0
    assert len(both(b"[]", tmp_path)) == 0
    assert len(both(b'{"traceEvents":[ { } ,' + GOOD + b"]}", tmp_path)) == 2


def test_huge_arguments(tmp_path: Path) -> None:
    stack = b"frame;" * 200_000
    deep = b"[" * 50_000 + b"]" * 50_000
    event = b'{"ph":"X","name":"n","args":{"Call stack":"' + stack + b'","x":' + deep + b',"stream":3}}'
    events = both(trace_of(GOOD, event, GOOD), tmp_path)
    assert len(events) == 3
    assert events.fields["stream"].values.tolist() == [7, 3, 7]
    assert events.texts[0] == '"' + stack.decode() + '"'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "empty-file"),
        (b"   \n", "not-a-trace"),
        (b"hello", "not-a-trace"),
        (b"\x7fELF\x02\x01", "not-a-trace"),
        (b'{"a": [1, 2, 3]}', "not-a-trace"),
        (b'{"traceEvents": null}', "not-a-trace"),
        (b'{"a": {"traceEvents": [', "not-a-trace"),
        (b"[1, 2, 3]", "not-a-trace"),
        (b'[{"a": 1}, {"b": 2}]', "not-a-trace"),
        (b'{"schemaVersion": 1, "traceEv', "not-a-trace"),
    ],
)
@pytest.mark.parametrize("scanner", ["native", "python"])
def test_files_that_are_no_trace_are_refused(text: bytes, code: str, scanner: str, tmp_path: Path) -> None:
    for compress in (False, True):
        outcome = scan_text(text, tmp_path, scanner=scanner, compress=compress)
        if text.startswith(b'{"a": {"traceEvents"'):
            assert isinstance(outcome, RawEvents)  # cut off inside: the array is looked for by its name
        else:
            assert isinstance(outcome, str)
            assert outcome.startswith(code + ":")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(UnreadableFile) as caught:
            scan_file(path)
        assert caught.value.code == "no-file"


def test_header_on_both_sides_and_damage_in_it(tmp_path: Path) -> None:
    text = (
        b'{"a":{"b":[1,2]},"c":inf,"d":' + b"[" * 100_000 + b"]" * 100_000 + b',"traceEvents":[' + GOOD + b"]"
        b',"INFO":["broken "quotes" here"],\n"traceName":"t","displayTimeUnit":"ns"}'
    )
    events = both(text, tmp_path)
    assert events.header == {"a": {"b": [1, 2]}, "traceName": "t", "displayTimeUnit": "ns"}
    assert len(events.notes) == 3
    assert len(events) == 1


def test_half_a_surrogate_pair_in_the_header_is_replaced(tmp_path: Path) -> None:
    events = both(b'{"deviceProperties":[{"id":0,"name":"A\\ud800B"}],"traceEvents":[' + GOOD + b"]}", tmp_path)
    assert events.header["deviceProperties"] == [{"id": 0, "name": "A\ufffdB"}]


def test_header_with_a_lost_bracket(tmp_path: Path) -> None:
    events = both(b'{"deviceProperties":[{"id":0},"traceEvents":[' + GOOD + b"]}", tmp_path)
    assert len(events) == 1
    assert events.notes


def test_truncated_gzip_is_read_up_to_the_damage(tmp_path: Path) -> None:
    text = trace_of(*[GOOD] * 2000)
    whole = gzip.compress(text, 9, mtime=0)
    path = tmp_path / "trace.json.gz"
    garbled = bytearray(whole)
    garbled[len(whole) * 2 // 3] ^= 0xFF
    for data in (whole[: len(whole) // 2], whole[:-4], bytes(garbled), whole + b"rubbish"):
        path.write_bytes(data)
        results = [scan_file(path, scanner=scanner) for scanner in ("native", "python")]
        assert difference(*results) == ""
        assert results[0].truncated
        assert "gzip" in results[0].notes[0]
        assert len(results[0]) > 0
    path.write_bytes(whole + bytes(512))
    assert not scan_file(path).truncated


def test_gzip_members_are_joined(tmp_path: Path) -> None:
    text = trace_of(*[GOOD] * 50)
    path = tmp_path / "misleading_name.json"
    path.write_bytes(b"".join(gzip.compress(text[at : at + 997]) for at in range(0, len(text), 997)))
    events = scan_file(path)
    assert len(events) == 50
    assert (events.bytes_read, events.truncated, events.notes) == (len(text), False, [])


def test_limits_on_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = trace_of(*[GOOD] * 50)
    for compress in (False, True):
        assert str(scan_text(text, tmp_path, compress=compress, limit_bytes=1000)).startswith("too-large:")
        assert isinstance(scan_text(text, tmp_path, compress=compress, limit_bytes=len(text)), RawEvents)
    monkeypatch.setenv("WARPLINE_MAX_BYTES", "1000")
    assert str(scan_text(text, tmp_path)).startswith("too-large:")
    monkeypatch.setenv("WARPLINE_MAX_BYTES", "lots")
    with pytest.raises(UsageError):
        scan_file(tmp_path / "trace.json")


@pytest.mark.parametrize("filler", [b" ", b'{"a":', b"["])
def test_compressible_rubbish_is_refused_soon(filler: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpline.sources.unpack.BOMB_BYTES", 1 << 30)
    path = tmp_path / "bomb.json.gz"
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    start = b"{" if filler == b" " else b'{"x":'
    chunk = filler * ((1 << 20) // len(filler))
    packed = [packer.compress(start)] + [packer.compress(chunk) for _ in range(66)]
    path.write_bytes(b"".join(packed) + packer.flush())
    with pytest.raises(UnreadableFile) as caught:
        scan_file(path)
    assert caught.value.code == "not-a-trace"


def test_a_bomb_behind_the_header_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpline.sources.unpack.BOMB_BYTES", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b" " * (16 << 20) + GOOD + b"]}"))
    with pytest.raises(UnreadableFile) as caught:
        scan_file(path)
    assert caught.value.code == "zip-bomb"


def test_arguments_are_decoded_on_request(tmp_path: Path) -> None:
    odd = rb'{"ph":"X","name":"odd","args":{"a":inf,"b":"C:\dev","c":[1,{"d":2}],"e":1.5,}}'
    text = trace_of(GOOD, odd, b'{"ph":"i"}', GOOD)
    for compress in (False, True):
        events = scan_text(text, tmp_path, compress=compress)
        assert isinstance(events, RawEvents)
        rows = [3, 1, 2, 0, 1]
        path = tmp_path / "trace.json"
        found = read_arguments(path, events.args_offset[rows].tolist(), events.args_length[rows].tolist())
        good = {"stream": 7, "grid": [1, 2, 3]}
        strange = {"a": "inf", "b": "C:\\dev", "c": [1, {"d": 2}], "e": 1.5}
        assert found == [good, strange, {}, good, strange]


def test_events_inside_an_event_are_none_whatever_the_window(tmp_path: Path) -> None:
    lookalikes = b",".join([GOOD] * 200)
    text = trace_of(GOOD, b'{"ph":"i","name":"outer","args":{"stream":1,"x":[' + lookalikes + b"]}}", GOOD)
    path = tmp_path / "trace.json"
    path.write_bytes(text)
    for windows in (2, 3, 8):
        events = scan_file(path, scanner="native", window_bytes=64 * windows)
        assert difference(events, scan_file(path, scanner="python")) == ""
        assert [events.names[code] for code in events.name] == ["good", "outer", "good"]


def test_auto_falls_back_to_python_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TODAY)
    assert scan_file(path).scanner == "native"
    monkeypatch.setattr(native, "SOURCE", tmp_path / "scan.c")
    monkeypatch.setattr(native, "library_of", lambda _source: tmp_path / "absent.so")
    assert scan_file(path).scanner == "python"
    with pytest.raises(UsageError):
        scan_file(path, scanner="native")


def test_columns_outlive_the_scanner(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(trace_of(*[GOOD] * 10_000))
    times = scan_file(path, scanner="native").time_ns
    scan_file(path, scanner="native")
    assert set(times.tolist()) == {99125}


def test_the_table_of_fields_fits_the_scanner() -> None:
    assert len(FIELDS) <= 64

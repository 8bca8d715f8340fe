"""What remote write puts on the wire, read by Debian's protobuf, snappy and zstd, and held to the rules of the standard.

The messages are described here by hand, not made from proto/: a mistake there must not hide itself. Values are declared as
fixed64, which has double's wire type, so that not a bit of a NaN is lost on the way.
"""

import collections
import dataclasses
import math
import re
import struct

import snappy
import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STALE = 0x7FF0000000000002
NAN = 0x7FF8000000000001
GAUGE = 2

# name, number, type; "*" repeats; a type with a capital is a message of the same file.
V1 = {
    "Label": ["name 1 string", "value 2 string"],
    "Sample": ["value 1 fixed64", "timestamp 2 int64"],
    "TimeSeries": ["labels 1 *Label", "samples 2 *Sample", "exemplars 3 *bytes", "histograms 4 *bytes"],
    "MetricMetadata": ["type 1 int32", "metric_family_name 2 string", "help 4 string", "unit 5 string"],
    "WriteRequest": ["timeseries 1 *TimeSeries", "metadata 3 *MetricMetadata"],
}
V2 = {
    "Sample": ["value 1 fixed64", "timestamp 2 int64", "start_timestamp 3 int64"],
    "Metadata": ["type 1 int32", "help_ref 3 uint32", "unit_ref 4 uint32"],
    "TimeSeries": [
        "labels_refs 1 *uint32",
        "samples 2 *Sample",
        "histograms 3 *bytes",
        "exemplars 4 *bytes",
        "metadata 5 Metadata",
    ],
    "Request": ["symbols 4 *string", "timeseries 5 *TimeSeries"],
}
FORMS = {
    "1.0": {
        "content-type": "application/x-protobuf",
        "content-encoding": "snappy",
        "x-prometheus-remote-write-version": "0.1.0",
    },
    "2.0": {
        "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        "content-encoding": "snappy",
        "x-prometheus-remote-write-version": "2.0.0",
    },
    "vm": {
        "content-type": "application/x-protobuf",
        "content-encoding": "zstd",
        "x-victoriametrics-remote-write-version": "1",
    },
}
VERSIONS = ("x-prometheus-remote-write-version", "x-victoriametrics-remote-write-version")


def messages(package, shapes):
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in shapes.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in map(str.split, fields):
            field = message.field.add(name=field_name, number=int(number))
            field.label = kinds.LABEL_REPEATED if kind[0] == "*" else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            if kind[0].isupper():
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(f"{package}.{name}"))


WriteRequest = messages("first", V1)
Request = messages("second", V2)

Sample = collections.namedtuple("Sample", "bits timestamp")  # milliseconds
Series = collections.namedtuple("Series", "labels samples")  # pairs as they came; Samples
Metadata = collections.namedtuple("Metadata", "type family help unit")


@dataclasses.dataclass
class Write:
    """One decoded request."""

    form: str
    series: list
    metadata: list
    raw: bytes

    def samples(self):
        return sum(len(s.samples) for s in self.series)


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits(value):
    """As the sender must write it: every NaN score is the ordinary one."""
    return NAN if math.isnan(value) else struct.unpack("<Q", struct.pack("<d", value))[0]


def form_of(headers):
    """The form that all headers name; they must agree with one another."""
    for form, wanted in FORMS.items():
        given = {name: headers.get(name) for name in ("content-type", "content-encoding", *VERSIONS)}
        if {k: v for k, v in given.items() if v is not None} == wanted:
            return form
    raise AssertionError(f"the headers are of no form: {headers}")


def unpack(headers, body):
    if headers.get("content-encoding") == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    assert not body.startswith(b"\xff\x06\x00\x00sNaPpY"), "framed snappy"
    return snappy.decompress(body)


def no_unknown_fields(message):
    assert len(message.UnknownFields()) == 0, f"unknown fields in {type(message).__name__}"


def decode_v1(raw):
    message = WriteRequest.FromString(raw)
    no_unknown_fields(message)
    series = []
    for one in message.timeseries:
        no_unknown_fields(one)
        assert not one.exemplars and not one.histograms
        labels = [(label.name, label.value) for label in one.labels]
        series.append(Series(labels, [Sample(s.value, s.timestamp) for s in one.samples]))
    return series, [Metadata(m.type, m.metric_family_name, m.help, m.unit) for m in message.metadata]


def fields(raw):
    """Yields number, wire type and content of a message's fields, without its schema."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(raw):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, kind, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        yield tag >> 3, kind, raw[at : at + size]
        at += size


def decode_v2(raw):
    message = Request.FromString(raw)
    no_unknown_fields(message)
    symbols = list(message.symbols)
    assert symbols and symbols[0] == "", "the first symbol must be the empty one"
    assert len(set(symbols)) == len(symbols), "symbols repeat"
    for number, kind, content in fields(raw):
        if number == 5:
            assert [k for n, k, _ in fields(content) if n == 1] == [2], "labels_refs must be packed, once"
    series, metadata, used = [], {}, {0}
    for one in message.timeseries:
        no_unknown_fields(one)
        assert not one.exemplars and not one.histograms
        refs = list(one.labels_refs)
        used.update(refs)
        assert len(refs) % 2 == 0 and all(ref < len(symbols) for ref in refs), refs
        labels = list(zip([symbols[r] for r in refs[::2]], [symbols[r] for r in refs[1::2]]))
        series.append(Series(labels, [Sample(s.value, s.timestamp) for s in one.samples]))
        if one.HasField("metadata"):
            used.update((one.metadata.help_ref, one.metadata.unit_ref))
            help_text, unit = symbols[one.metadata.help_ref], symbols[one.metadata.unit_ref]
            name = dict(labels)["__name__"]
            assert metadata.setdefault(name, found := Metadata(one.metadata.type, name, help_text, unit)) == found
    assert used == set(range(len(symbols))), "symbols that no one uses"
    return series, list(metadata.values())


def decode(headers, body):
    """headers: pairs."""
    found = {name.lower(): value for name, value in headers}
    form = form_of(found)
    raw = unpack(found, body)
    series, metadata = (decode_v2 if form == "2.0" else decode_v1)(raw)
    return Write(form, series, metadata, raw)


def check_labels(labels):
    """The rules for a sender's labels."""
    names = [name.encode() for name, _ in labels]
    assert names == sorted(set(names)), f"labels not sorted, or twice: {labels}"
    assert all(name and value for name, value in labels), f"an empty name or value: {labels}"
    found = dict(labels)
    assert re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", found.get("__name__", "")), f"no metric name: {labels}"
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in found), labels


def check(write, method, headers, body):
    """AssertionError if a request breaks a rule that a receiver may insist on. headers: pairs."""
    found = {name.lower(): value for name, value in headers}
    assert method == "POST", method
    assert len(found) == len(headers), f"a header twice: {headers}"
    assert re.match(r"[^/\s]+/\S+", found.get("user-agent", "")), f"User-Agent: {found.get('user-agent')}"
    assert "expect" not in found, "Expect delays each request by a round trip"
    assert found.get("content-length") == str(len(body)), "a receiver may want the length"
    assert write.series or write.metadata, "an empty request"
    for series in write.series:
        check_labels(series.labels)
        assert series.samples, f"no sample: {series.labels}"
        times = [sample.timestamp for sample in series.samples]
        assert times == sorted(set(times)), f"out of order inside a request: {series}"

"""A million points by OTLP/HTTP: 10,000 series of 20 pods, 100 times, in protobuf as collectors send it."""

import gzip
import time

PODS, SERIES, TIMES = 20, 500, 100
MARK_TIME, MARK_VALUE = b"TIMETIME", b"VALUEVAL"


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(key, value):
    return field(1, key.encode()) + field(2, field(1, value.encode()))


def point(i):
    labels = {"http.request.method": "GET", "http.response.status_code": str(200 + i % 5), "http.route": f"/api/v1/items/{i}",
              "server.address": "shop.example.com"}
    attributes = b"".join(field(7, attribute(k, v)) for k, v in labels.items())
    start = b"\x11" + (1).to_bytes(8, "little")
    return field(1, start + b"\x19" + MARK_TIME + b"\x31" + MARK_VALUE + attributes)


def metric(i):
    """A tenth of the series, as a monotonic cumulative sum."""
    points = b"".join(point(k) for k in range(i * SERIES // 10, (i + 1) * SERIES // 10))
    return field(2, field(1, f"http.server.requests.{i}".encode()) + field(3, b"{request}") + field(7, points + b"\x10\x02\x18\x01"))


def resource(pod):
    names = {"service.name": "shop", "service.instance.id": f"shop-{pod}", "k8s.namespace.name": "web",
             "k8s.pod.name": f"shop-{pod}", "k8s.node.name": f"node-{pod % 4}"}
    attributes = b"".join(field(1, attribute(k, v)) for k, v in names.items())
    return field(1, field(1, attributes) + field(2, b"".join(metric(i) for i in range(10))))


def bodies(packed):
    """One request for each time, 5 s apart, the last one now."""
    form = b"".join(resource(pod) for pod in range(PODS))
    for i in range(TIMES):
        at = (int(time.time()) - 5 * (TIMES - 1 - i)) * 10**9
        body = form.replace(MARK_TIME, at.to_bytes(8, "little")).replace(MARK_VALUE, (1000 + 7 * i).to_bytes(8, "little"))
        yield gzip.compress(body, 1) if packed else body

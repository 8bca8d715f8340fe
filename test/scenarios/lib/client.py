"""One HTTP request to a program under test; without proxies, whatever the environment says."""

import contextlib
import http.client
import json as jsonlib
import urllib.parse
from dataclasses import dataclass

from lib.wait import DEADLINE


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return jsonlib.loads(self.body)


def call(method, url, body=None, tls=None, **headers):
    """Header names are written with _ for -: call("GET", url, Accept_Encoding="gzip"). tls: an SSLContext."""
    u = urllib.parse.urlsplit(url)
    if tls:
        connection = http.client.HTTPSConnection(u.hostname, u.port, timeout=DEADLINE, context=tls)
    else:
        connection = http.client.HTTPConnection(u.hostname, u.port, timeout=DEADLINE)
    with contextlib.closing(connection):
        path = (u.path or "/") + (f"?{u.query}" if u.query else "")
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())

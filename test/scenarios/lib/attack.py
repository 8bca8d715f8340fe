"""Clients that hold connections: many sockets in this process, on any address of a program under test."""

import contextlib
import resource
import socket

from lib.process import missing
from lib.wait import DEADLINE


def room_for(sockets):
    """Raises this process's limit of open files; skips the test where that is not allowed."""
    want = sockets + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < want:
        missing(f"the hard limit of open files is {hard}, {want} are needed (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < want:
        resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))


@contextlib.contextmanager
def connections(port, n, first=b"", host="127.0.0.1", receive_buffer=None):
    """So many connections that each send `first` and read nothing."""
    room_for(n)
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(n):
            s = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
            if receive_buffer:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            s.settimeout(DEADLINE)
            s.connect((host, port))
            s.sendall(first)
            held.append(s)
        yield held


def is_closed(s):
    """Whether the server has closed it; what it sent before is read and forgotten."""
    s.setblocking(False)
    try:
        while s.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def drip(held, byte=b"G"):
    """One more byte on each connection that is still open."""
    for s in held:
        with contextlib.suppress(OSError):
            s.setblocking(False)
            s.send(byte)


def exchange(port, request, host="127.0.0.1"):
    """Sends these bytes; (status, all that came until the server closed)."""
    with socket.create_connection((host, port), DEADLINE) as s:
        s.sendall(request)
        came = b""
        with contextlib.suppress(ConnectionError):
            while data := s.recv(1 << 16):
                came += data
    return int(came.split(b" ")[1]) if came else None, came

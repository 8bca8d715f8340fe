"""Floods of an agent with TLS and basic authentication: unfinished handshakes, wrong passwords, and scrapers among them."""

import asyncio
import base64
import contextlib
import threading
import time

from lib.attack import connections, drip
from lib.wait import DEADLINE, LONG

# A client's first message, of which the rest comes byte by byte.
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def ask(connection, authorization):
    """The status of a scrape."""
    reader, writer = connection
    writer.write(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n"
        f"Authorization: {authorization}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [line[16:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")]
    await reader.readexactly(int(length))
    return int(head.split()[1])


async def open_connection(port, context, source="127.0.0.1"):
    """context: None for plain HTTP."""
    tls = {"ssl": context, "ssl_handshake_timeout": DEADLINE} if context else {}
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0), **tls)


class Flood:
    """Scrapers, which all must succeed, and guessers of a known user's password on addresses of their own."""

    def __init__(self, port, context, user, password):
        self.port, self.context, self.user, self.right = port, context, user, basic(user, password)
        self.seconds = []  # of each scrape
        self.refused = 0
        self.done = None

    async def scraper(self, times, together):
        """Comes back, as Prometheus does, if its connection was closed to make room, or because this process was slow."""
        connection, done = None, 0
        while done < times:
            try:
                connection = connection or await open_connection(self.port, self.context)
                began = time.monotonic()
                status = await ask(connection, self.right)
            except (OSError, asyncio.IncompleteReadError):
                connection = None
                continue
            assert status == 200, status
            self.seconds.append(time.monotonic() - began)
            done += 1
            if done == 1:
                await together.wait()
        connection[1].close()

    async def guesser(self, number):
        while not self.done.is_set():
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                connection = await open_connection(self.port, self.context, f"127.0.1.{number + 1}")
                while not self.done.is_set():
                    status = await ask(connection, basic(self.user, f"{number}-{self.refused}"))
                    assert status in (401, 429, 503), status
                    self.refused += 1
                connection[1].close()

    async def go(self, scrapers, times, guessers):
        self.done, together = asyncio.Event(), asyncio.Barrier(scrapers)
        guessing = [asyncio.create_task(self.guesser(n)) for n in range(guessers)]
        await asyncio.wait_for(asyncio.gather(*(self.scraper(times, together) for _ in range(scrapers))), LONG)
        self.done.set()
        await asyncio.gather(*guessing)

    def run(self, scrapers, times, guessers):
        asyncio.run(self.go(scrapers, times, guessers))


class Dripping(threading.Thread):
    """A byte a second on each connection; those that are closed are not replaced."""

    def __init__(self, held, byte):
        super().__init__()
        self.held, self.byte, self.done = held, byte, threading.Event()

    def run(self):
        while not self.done.wait(1):
            drip(self.held, self.byte)


@contextlib.contextmanager
def slow_connections(port, n, first, byte):
    with connections(port, n, first) as held:
        dripping = Dripping(held, byte)
        dripping.start()
        try:
            yield
        finally:
            dripping.done.set()
            dripping.join()


def slow_handshakes(port, n):
    return slow_connections(port, n, HELLO, b"\0")

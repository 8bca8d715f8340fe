"""300 scrapers with persistent connections scrape at the same time: none is starved, and the pages that the loop serves
still respond."""

import asyncio

from lib.agent import summary
from lib.fake import results
from lib.wait import DEADLINE

SCRAPERS, SCRAPES = 300, 5
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
POST = b"POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


async def exchange(reader, writer, request):
    """One request on a kept connection."""
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE)
    assert head.startswith(b"HTTP/1.1 200 "), head
    [length] = [line[16:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")]
    assert len(await asyncio.wait_for(reader.readexactly(int(length)), DEADLINE)) > 100 or request == POST


async def scraper(port, request, gate):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await exchange(reader, writer, request)
        await gate.wait()  # until all of them are connected
        for _ in range(SCRAPES):
            await exchange(reader, writer, request)
    finally:
        writer.close()


async def all_at_once(port, request):
    gate = asyncio.Barrier(SCRAPERS)
    await asyncio.gather(*(scraper(port, request, gate) for _ in range(SCRAPERS)))


def test_none_is_starved(fake, start_agent):
    pairs = [x for i in range(500) for x in ({"node": f"node-{i}", "namespace": "n" * 30}, i / 7)]
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results(*pairs)))]})
    agent.wait_scores("s")
    asyncio.run(all_at_once(agent.port, REQUEST))
    agent.wait_metric("dynamic_scoring_http_requests_total", SCRAPERS * SCRAPES, handler="/metrics", code="200")


def test_nor_those_who_post(fake, start_agent):
    """libmicrohttpd 0.9.75 stalls in its epoll mode with many persistent connections that POST; each of these goes
    through the loop."""
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)))]}, "--log.level=warn")
    asyncio.run(all_at_once(agent.port, POST))
    assert agent.wait_scores("s") == [({}, 1)]

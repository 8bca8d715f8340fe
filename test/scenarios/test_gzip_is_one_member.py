"""A compressed page is a single complete gzip member with the same contents as the plain page."""

import zlib

from lib.agent import summary
from lib.exposition import Samples
from lib.fake import answer, results


def gunzip(body):
    """Rejects a second member and a truncated one."""
    one = zlib.decompressobj(wbits=31)
    text = one.decompress(body) + one.flush()
    assert one.eof and one.unused_data == b"" == one.unconsumed_tail
    return text.decode()


def test_one_member(fake, start_agent):
    pairs = [x for i in range(2000) for x in ({"pod": f"pod-{i}"}, i / 3)]
    paths = [
        fake.on("/many", results(*pairs)),
        fake.on("/one", results({}, 1)),
        fake.on("/none", answer({"results": []})),
    ]
    agent = start_agent({"summaries": [summary(f"s{i}", p, interval=600) for i, p in enumerate(paths)]})
    agent.wait_all()
    for accept in ("text/plain", "application/openmetrics-text; version=1.0.0"):
        packed = agent.get("/metrics", Accept=accept, Accept_Encoding="gzip")
        plain = agent.get("/metrics", Accept=accept, Accept_Encoding="identity")
        assert packed.headers["Content-Encoding"] == "gzip" and plain.headers["Content-Encoding"] is None
        assert int(packed.headers["Content-Length"]) == len(packed.body) < len(plain.body) / 5
        assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept, Accept-Encoding"
        assert packed.headers["Content-Type"] == plain.headers["Content-Type"]

        def scores(text):
            return [line for line in text.splitlines() if line.startswith("dynamic_score")]

        unpacked = gunzip(packed.body)
        assert scores(unpacked) == scores(plain.text) and len(scores(unpacked)) > 2000
        assert unpacked.endswith("# EOF\n") == ("openmetrics" in accept)


def test_before_the_first_scores(start_agent):
    agent = start_agent({"summaries": []})
    assert Samples(gunzip(agent.get("/metrics", Accept_Encoding="gzip").body)).value("dynamic_scoring_scorers") == 0


def test_who_does_not_want_it_does_not_get_it(start_agent):
    agent = start_agent({"summaries": []})
    wishes = {None: None, "": None, "gzip;q=0": None, "br, deflate": None, "identity;q=1, gzip;q=0.5": None}
    for wish, expected in (wishes | {"deflate, gzip;q=0.5": "gzip", "*": "gzip"}).items():
        got = agent.get("/metrics", **({} if wish is None else {"Accept_Encoding": wish}))
        assert got.headers["Content-Encoding"] == expected, wish

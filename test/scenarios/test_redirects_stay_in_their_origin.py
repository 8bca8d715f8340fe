"""A redirect to another origin is not followed, by neither stage: no series and no token go there, and no answer comes
from there. Within one origin it is followed, with the same request; what parsers might read differently is not."""

import time

import pytest

from lib.agent import summary
from lib.fake import plain, raw, redirect, results, series

AUTH = {
    n: v
    for kind in ("source", "scoring")
    for n, v in ((f"{kind}EndpointAuthName", "t"), (f"{kind}EndpointAuthKey", "k"))
}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_to_another_origin(fake, other_fake, start_agent, tmp_path, status):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text("s3cret")
    there = other_fake.on("/there", results({}, 1))
    query_there = other_fake.on("/api/v1/query_range", series({"node": "n"}))
    fake.on("/api/v1/query_range", series({"node": "n"}))
    fake.on("/moved/api/v1/query_range", redirect(query_there, status))
    secure = fake.on("/secure", redirect("https://127.0.0.1/secure?code=hidden", status))
    fake.on("/here", results({}, 2))
    scorers = [
        summary("away", fake.on("/away", redirect(there + "?code=hidden", status)), source=fake.url, **AUTH),
        summary("moved", fake.on("/moved", results({}, 3)), source=fake.url + "/moved/api/v1/query_range", **AUTH),
        summary("secure", secure, **AUTH),
        summary("home", fake.on("/home", redirect("/here", status)), **AUTH),
    ]
    agent = start_agent({"summaries": scorers}, f"--secrets.dir={tmp_path}")
    assert agent.wait_scores("home") == [({}, 2)]
    errors = {name: s["error"] for name, s in agent.wait_all().items()}
    refused = f"redirect from {fake.url} to {other_fake.url} is not followed: it is another origin; configure its URL"
    for name, stage in (("away", "scoring"), ("moved", "source")):
        assert (errors[name]["stage"], errors[name]["class"]) == (stage, "http_other"), errors[name]
        assert refused in errors[name]["text"], errors[name]
    assert "to https://127.0.0.1:443 is not followed: configure the https:// URL" in errors["secure"]["text"]
    assert "hidden" not in str(errors) + agent.log()
    assert errors["home"] is None
    assert fake.requests("/here")[0].method == "POST" and fake.requests("/here")[0].token == "Bearer s3cret"
    assert not other_fake.requests() and not fake.requests("/moved")


# name: (the header lines after "Location:", words in the error). %s is a URL of another origin.
UNUSUAL = {
    "vt": ("\x0b%s", "it contains the byte 0x0b"),
    "vt_after_blank": (" \x0b%s", "it contains the byte 0x0b"),
    "vt_at_end": ("%s\x0b", "it contains the byte 0x0b"),
    "ff": ("\x0c%s", "it contains the byte 0x0c"),
    "cr": ("%s\rzzz", "it contains the byte 0x0d"),
    "cr_at_end": ("%s\r", "it contains the byte 0x0d"),
    "del": ("%s\x7f", "it contains the byte 0x7f"),
    "space": ("/ %s", "it contains the byte 0x20"),
    "backslash": ("/\\%s", "it contains the byte 0x5c"),
    "folded": (" /here\r\n %s", "it goes on in another line"),
    "twice": (" /here\r\nLocation: %s", "more than one Location"),
    "twice_alike": (" /here\r\nlocation: /here", "more than one Location"),
    "user": (" http://user@127.0.0.1@%s", "more than one @ before its host"),
    "one_slash": (" http:/%s", "it is no http or https URL"),
    "three_slashes": (" ///%s", "it has no host"),
    "file": (" file:///etc/passwd", "it is no http or https URL"),
    "empty": ("", "it is empty"),
}


def with_location(lines, status=308):
    head = f"HTTP/1.1 {status} Word\r\nLocation:{lines}\r\nContent-Length: 0\r\n\r\n"
    return raw(head.encode())


def test_a_location_that_parsers_read_differently(fake, other_fake, start_agent, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text("s3cret-token")
    (tmp_path / "t" / "header").write_text("X-Api-Key: very-secret-key")
    there = other_fake.on("/there", results({}, 666))
    fake.on("/here", results({}, 666))
    fake.on("/api/v1/query_range", series({"node": "n"}))
    scorers = []
    for name, (lines, _) in UNUSUAL.items():
        reply = with_location(lines % there if "%s" in lines else lines)
        scorers.append(summary(name, fake.on(f"/{name}", reply), source=fake.url, interval=600, **AUTH))
    agent = start_agent({"summaries": scorers}, f"--secrets.dir={tmp_path}")
    for name, status in agent.wait_all().items():
        error = status["error"]
        assert (error["stage"], error["class"]) == ("scoring", "broken"), (name, error)
        assert UNUSUAL[name][1] in error["text"] and error["text"].isprintable(), (name, error)
    assert not other_fake.requests() and not fake.requests("/here")


def test_the_same_request_goes_on(fake, start_agent, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k").write_text("s3cret-token")
    metrics = [{"node": f"n{i}", "filler": "x" * 100} for i in range(1000)]  # more than curl joins with the headers
    fake.on("/moved/api/v1/query_range", redirect("/api/v1/query_range", 303))
    fake.on("/api/v1/query_range", series(*metrics))
    for i in range(1, 6):
        fake.on(f"/hop{i}", redirect(f"hop{i + 1}", (301, 302, 307, 308)[i % 4]))
    fake.on("/hop6", results({}, 6))
    fake.on("/hop0", redirect("/hop1"))
    host = fake.url.removeprefix("http://")
    scorers = [
        summary("five", fake.url + "/hop1", source=fake.url + "/moved/api/v1/query_range", interval=600, **AUTH),
        summary("six", fake.url + "/hop0", interval=600),
        summary("user", fake.on("/user", redirect(f"http://someone:else@{host}/named")), interval=600, **AUTH),
        summary("post_303", fake.on("/see", redirect("/there", 303)), interval=600),
        summary("choices", fake.on("/choices", redirect("/there", 300)), interval=600),
        summary("nowhere", fake.on("/nowhere", plain("", 307)), interval=600),
    ]
    fake.on("/named", results({}, 7))
    agent = start_agent({"summaries": scorers}, f"--secrets.dir={tmp_path}")
    status = agent.wait_all()
    assert agent.wait_scores("five") == [({}, 6)] and agent.wait_scores("user") == [({}, 7)]
    posts = [r for r in fake.requests() if r.method == "POST" and len(r.body) > 100000]
    assert [r.path for r in posts] == [f"/hop{i}" for i in range(1, 7)]
    assert len({r.body for r in posts}) == 1 and {r.token for r in posts} == {"Bearer s3cret-token"}
    assert len(posts[0].json["data"]) == 1000
    assert [r.token for r in fake.requests("/named")] == ["Bearer s3cret-token"]
    assert status["six"]["error"]["class"] == "broken" and "more than 5 redirects" in status["six"]["error"]["text"]
    for name, code in (("post_303", 303), ("choices", 300), ("nowhere", 307)):
        error = status[name]["error"]
        assert error["class"] == "http_other" and f"HTTP {code}" in error["text"], error
    assert not fake.requests("/there")


def test_one_deadline_and_one_limit(fake, start_agent):
    def slow(reply):
        return lambda *args: (time.sleep(1.5), reply(*args))

    megabyte = b"x" * (1 << 20)
    fake.on("/slow2", slow(results({}, 1)))
    fake.on("/large2", plain(megabyte, 307, Location="/last"))
    fake.on("/last", results({}, 2))
    scorers = [
        summary("slow", fake.on("/slow1", slow(redirect("/slow2"))), timeout="2s", interval=600),
        summary("large", fake.on("/large1", plain(megabyte, 307, Location="/large2")), interval=600),
        summary("once", fake.url + "/large2", interval=600),
    ]
    agent = start_agent({"summaries": scorers, "limits": {"responseBytes": "1536KiB"}})
    errors = {name: s["error"] for name, s in agent.wait_all().items()}
    assert errors["slow"]["class"] == "timeout", errors
    assert errors["large"]["class"] == "too_large", errors
    assert "exceeds the limit of 1572864 bytes, which includes those of redirects" in errors["large"]["text"]
    assert agent.wait_scores("once") == [({}, 2)]

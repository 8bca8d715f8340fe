"""A file in a Kubernetes volume is a symbolic link into a folder that is replaced as a whole; the new file is read."""

import json

from lib.agent import summary
from lib.fake import results


def mount(volume, version, files):
    """As the kubelet does: a new folder, `..data` renamed over the old link, and links to it that stay."""
    folder = volume / f"..{version}"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (volume / "..tmp").symlink_to(folder.name)
    (volume / "..tmp").rename(volume / "..data")
    for name in files:
        top = volume / name.split("/")[0]
        if not top.is_symlink():
            top.symlink_to(f"..data/{top.name}")


def test_configuration(fake, start_agent, tmp_path):
    one = [summary("one", fake.on("/one", results({}, 1)))]
    two = [summary("two", fake.on("/two", results({}, 2)))]
    mount(tmp_path, "2026_01", {"summaries": json.dumps(one)})
    agent = start_agent({}, "--cluster-name=c", f"--config.file={tmp_path}/summaries")
    agent.wait_scores("one")
    mount(tmp_path, "2026_02", {"summaries": json.dumps(two)})
    assert agent.reload().status == 200
    assert agent.wait_scores("two") == [({}, 2)]
    assert agent.scores("one") == []


def test_secret(fake, start_agent, tmp_path):
    """Read before each round, without a reload."""
    volume = tmp_path / "scorer"
    mount(volume, "1", {"token": "first\n"})
    scoring = fake.on("/s", results({}, 1))
    with_token = summary("s", scoring, scoringEndpointAuthName="scorer", scoringEndpointAuthKey="token")
    agent = start_agent({"summaries": [with_token]}, f"--secrets.dir={tmp_path}")
    agent.wait_scores("s")
    mount(volume, "2", {"token": "second"})
    agent.wait_until(lambda: fake.requests("/s")[-1].token == "Bearer second", "the new token is used")
    assert fake.requests("/s")[0].token == "Bearer first"

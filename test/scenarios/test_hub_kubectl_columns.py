"""`kubectl get` shows at a glance what does not work."""

from lib.scorers import distributed, full, wait_status
from lib.wait import eventually, wait_until


def table(hub, *words):
    """[{column: value}]; columns are separated by two or more spaces."""
    done = hub.kubectl("get", *words)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.rstrip("\n").split("\n")
    starts = [i for i in range(len(head)) if head[i] != " " and (i == 0 or head[i - 2 : i] == "  ")]
    ends = [*starts[1:], None]
    names = [head[a:b].strip() for a, b in zip(starts, ends)]
    return [{n: row[a:b].strip() for n, a, b in zip(names, starts, ends)} for row in rows]


def look_at_the_scorers(hub):
    broken, good = table(hub, "dynamicscorers")
    assert (good["NAME"], good["HEALTH"], good["SCORE"], good["READY"]) == ("s", "Active", "cpu", "True")
    assert (good["CLUSTERS"], good["UP-TO-DATE"], good["SCORING"], good["FAILING"]) == ("2", "2", "0", "0")
    assert (broken["NAME"], broken["HEALTH"], broken["READY"]) == ("broken", "Inactive", "False")
    broken, good = table(hub, "dscorer", "--output=wide")
    assert (good["MODE"], good["SOURCE"]) == ("Full", "API")
    assert "127.0.0.1:9" in broken["MESSAGE"]


def test_scorers(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.apply_scorer("broken", full("http://127.0.0.1:9/config"))
    hub.wait_scorer("broken", "Healthy", "False")
    wait_status(hub, "s", lambda s: s["clusters"]["upToDate"] == 2, "it is everywhere")
    eventually(lambda: look_at_the_scorers(hub))
    done = hub.kubectl("wait", "--for=condition=Ready", "dynamicscorer/s", "--timeout=60s")
    assert done.returncode == 0, done.stderr


def test_configs(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.wait_config("Distributed", "True")

    def look():
        (row,) = table(hub, "dynamicscoringconfigs")
        assert (row["NAME"], row["READY"]) == ("dynamic-scoring-config", "True")
        assert (row["CLUSTERS"], row["UP-TO-DATE"], row["FAILING"]) == ("2", "2", "0")

    eventually(look)


def test_describe_shows_the_events(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.apply_scorer("broken", full("http://127.0.0.1:9/config"))
    hub.wait_scorer("broken", "Healthy", "False")

    def described():
        done = hub.kubectl("describe", "dynamicscorer", "broken")
        return done.returncode == 0 and "Warning" in done.stdout and "Unreachable" in done.stdout and done.stdout

    assert "Events:" in wait_until(described, "the events are shown", every=0.5)

"""pytest test_scorer.py; needs httpx beside FastAPI."""

from fastapi.testclient import TestClient
from scorer import app, score

client = TestClient(app)


def test_score():
    assert score([5.0, 5.0, 5.0]) == 0
    assert round(score([1.0, 3.0]), 6) == 50
    assert score([1.0, float("nan"), 3.0]) == score([1.0, 3.0])
    assert score([1.0]) is None and score([0.0, 0.0]) is None


def test_scoring():
    series = {"metric": {"node": "n1", "pod": "a"}, "values": [[1700000000, "1"], [1700000060, "3"]]}
    empty = {"metric": {"node": "n2"}, "values": []}
    answer = client.post("/scoring", json={"data": [series, empty]})
    assert answer.json() == {"results": [{"metric": {"node": "n1", "pod": "a"}, "score": 50.0}]}
    assert client.post("/scoring", json={"data": []}).json() == {"results": []}


def test_config_and_health():
    assert client.get("/config").json()["scoring"]["path"] == "/scoring"
    assert client.get("/healthz").status_code == 200

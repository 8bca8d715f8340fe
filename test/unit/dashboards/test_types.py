#!/usr/bin/python3
"""Checks the dashboards against Grafana's types, those of its Python SDK: each field is known and has a value of its type.
pip installs the SDK into the cache, once."""

import collections.abc
import json
import os
import pathlib
import subprocess
import sys
import types
import typing

TOP = pathlib.Path(__file__).resolve().parents[3]
SDK = "grafana-foundation-sdk==1769699379!11.6.0"  # what follows the ! is Grafana's version
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "dynamic-scoring-tests", "grafana-sdk")
SKIPPED = 77
# Fields that Grafana reads and the SDK does not know, each with the place that documents it.
UNKNOWN = {
    "annotations.list.*.step": "annotations of the Prometheus data source",
    "annotations.list.*.titleFormat": "annotations of the Prometheus data source",
    "annotations.list.*.textFormat": "annotations of the Prometheus data source",
    "annotations.list.*.useValueForTime": "annotations of the Prometheus data source",
}


def install():
    """The folder of the SDK; exits with 77 where pip cannot install it, or is not to."""
    if os.environ.get("DS_SHORT"):
        print("left out: test/run --all has it")
        sys.exit(SKIPPED)
    folder = CACHE / SDK.split("!")[1]
    if not folder.exists():
        partial = folder.with_suffix(f".{os.getpid()}")
        pip = ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", partial, SDK]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"skipped: pip cannot install {SDK}: {done.stderr.strip().splitlines()[-1:]}")
            sys.exit(SKIPPED)
        partial.rename(folder)
    return folder


def fits(value, kind):
    """Whether a value of the SDK's objects is of its declared type; objects of the SDK are checked on their own."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, a) for a in args)
    if origin is typing.Literal:
        return value in args
    if origin in (list, collections.abc.Sequence):
        return isinstance(value, list) and all(fits(v, args[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(v, args[1]) for v in value.values())
    if isinstance(kind, type) and issubclass(kind, (str, int)) and hasattr(kind, "__members__"):
        return value in [member.value for member in kind]
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def unread(value, kind):
    """The SDK keeps objects in some lists as they came: (object, type) for each."""
    for a in typing.get_args(kind):
        yield from unread(value, a)
    if typing.get_origin(kind) is list and isinstance(value, list) and hasattr(typing.get_args(kind)[0], "from_json"):
        yield from ((one, typing.get_args(kind)[0]) for one in value if isinstance(one, dict))


def misfits(found, where):
    """Values of the SDK's objects, and of those below, that are of another type."""
    if isinstance(found, (list, tuple)):
        for n, one in enumerate(found):
            yield from misfits(one, f"{where}[{n}]")
    elif isinstance(found, dict):
        for key, one in found.items():
            yield from misfits(one, f"{where}.{key}")
    elif type(found).__module__.startswith("grafana_foundation_sdk"):
        for name, kind in typing.get_type_hints(type(found)).items():
            value = getattr(found, name)
            raw = list(unread(value, kind))
            for one, of in raw:
                read = of.from_json(one)
                yield from misfits(read, f"{where}.{name}")
                yield from (f"{where}.{name}{path} is no field" for path in lost(one, as_json(read)))
            if not raw and not fits(value, kind):
                yield f"{where}.{name}: {value!r} is not {kind}"
            yield from misfits(value, f"{where}.{name}")


def as_json(read):
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    return json.loads(JSONEncoder().encode(read))


def of_one_source(given):
    """The SDK takes the type of a panel's queries from the panel's data source, which -- Mixed -- does not tell."""
    for panel in given["panels"]:
        if panel.get("datasource", {}).get("uid") == "-- Mixed --":
            panel["datasource"] = panel["targets"][0]["datasource"]
    return given


def lost(given, kept, where=""):
    """Fields that are not in what the SDK made of them."""
    if isinstance(given, dict):
        if not isinstance(kept, dict):
            yield where
            return
        for key, value in given.items():
            if key not in kept:
                if value is not None:
                    yield f"{where}.{key}"
            else:
                yield from lost(value, kept[key], f"{where}.{key}")
    elif isinstance(given, list):
        for value, other in zip(given, kept if isinstance(kept, list) and len(kept) == len(given) else [None] * len(given)):
            yield from lost(value, other, f"{where}.*")
    elif given != kept:
        yield f"{where}: {given!r} became {kept!r}"


def main():
    sys.path.insert(0, str(install()))
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    problems, unused = [], set(UNKNOWN)
    for file in sorted((TOP / "dashboards").glob("*.json")):
        given = of_one_source(json.loads(file.read_text()))
        read = Dashboard.from_json(given)
        problems += [f"{file.name}: {p}" for p in misfits(read, "")]
        for path in lost(given, as_json(read)):
            path = path.removeprefix(".")
            unused.discard(path)
            if path not in UNKNOWN:
                problems.append(f"{file.name}: {path} is no field of Grafana {SDK.split('!')[1]}")
    problems += [f"UNKNOWN: {path} is known" for path in unused]
    print("\n".join(dict.fromkeys(problems)) or "the dashboards fit Grafana's types")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

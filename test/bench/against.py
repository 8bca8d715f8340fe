"""The option --against of test/bench/run: the same sections on two commits, in turn, and the ratios of their figures.

Each side is measured by its own script with its own programs, so that neither has to know the other's. The programs that ours is
compared with elsewhere are left out. Measuring is this file as a program, in a process of its own for each section:

    against.py ROOT BUILD SECTION    prints the section's rows as JSON, or why there are none
"""

import collections
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TURNS = 3
ONCE = {"flood", "hang", "hub", "many", "otlp", "placement", "promql", "tsdb"}  # these take minutes
WORSE = 1.1
HIGHER_IS_BETTER, NO_ORDER = {"per s"}, {""}
PEERS = {"go-program", "forecast_sklearn.py"}


# ---- One section of one side ----

def without_peers(run):
    """subprocess.run() to which the programs that ours is compared with are not installed."""
    def wrapped(command, **options):
        words = [str(w) for w in (command if isinstance(command, list) else [command])]
        name = pathlib.Path(words[0]).name
        if name in PEERS:
            return subprocess.CompletedProcess(words, 1, stdout="")
        return run([w for w in words if w not in ("lean", "plain")] if name == "hub" else command, **options)
    return wrapped


def script_of(root):
    """test/bench/run of a tree, as a module."""
    folder = root / "test/bench"
    sys.path[0] = str(folder)
    loader = importlib.machinery.SourceFileLoader("bench_run", str(folder / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    return module


def measure(root, build, section):
    """{"rows": [...]} or {"none": why}; for no section, what the script has."""
    script = script_of(root)
    if not section:
        return {"sections": script.SECTIONS, "programs": script.PROGRAMS}
    if section not in script.SECTIONS:
        return {"none": "no such section"}
    shutil.which = lambda *_, **__: None
    subprocess.run = without_peers(subprocess.run)
    script.build_peers = lambda _: section == "hub"  # whose API server is one of them
    if hasattr(script, "placement"):
        script.placement.highs_of = lambda *_: None
    table = script.Table()
    with tempfile.TemporaryDirectory(prefix="bench.") as folder:
        try:
            getattr(script.Bench(build, folder, table), section)()
        except FileNotFoundError as e:
            return {"none": f"no {pathlib.Path(e.filename or '').name}"}
        except (OSError, KeyError, ValueError, subprocess.CalledProcessError, SystemExit) as e:
            return {"none": f"{type(e).__name__}: {e}"}
    return {"rows": table.rows}


# ---- Both sides ----

def ask(root, build, section=""):
    done = subprocess.run([sys.executable, "-B", __file__, root, build, section], stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"none": "failed"}


def named(rows):
    """{(section, row, how many before it have these names): row}: names without their numbers, which are figures, too."""
    section, seen, found = "", collections.Counter(), {}
    for row in rows:
        if "section" in row:
            section = row["section"]
            continue
        key = tuple(re.sub(r"\d[\d.,]*", "#", text) for text in (section, row["what"]))
        found[(*key, seen[key])] = {**row, "section": section}
        seen[key] += 1
    return found


def measured(sides, section):
    """(section, row, unit, {side: figure}) of each row; {side: why} of sides without any."""
    answers = {side: [] for side in sides}
    for turn in range(1 if section in ONCE else TURNS):
        for side in list(sides)[::-1 if turn % 2 else 1]:  # a machine that gets slower is so to both
            answers[side].append(ask(*sides[side], section))
    none = {side: got[0]["none"] for side, got in answers.items() if "none" in got[0]}
    tables = {side: [named(a.get("rows", [])) for a in got] for side, got in answers.items()}
    rows = {key: row for side in tables for key, row in tables[side][0].items()}
    figures = [(row["section"], row["what"], row["unit"], {
        side: best(row["unit"], [t[key]["ours"] for t in got if key in t]) for side, got in tables.items() if key in got[0]})
        for key, row in rows.items()]
    return figures, none


def best(unit, values):
    """The value of the turn that other processes disturbed least."""
    return statistics.median(values) if unit in NO_ORDER else (max if unit in HIGHER_IS_BETTER else min)(values)


def ratio_of(unit, before, now):
    """(ratio, whether that is worse)"""
    ratio = now / before
    return ratio, unit not in NO_ORDER and (1 / ratio if unit in HIGHER_IS_BETTER and ratio else ratio) > WORSE


def lines_of(section, figures, none, written):
    yield ["", "", "", ""]
    if none:
        yield [section, none.get("before", ""), none.get("now", ""), ""]
    title = None
    for heading, what, unit, by_side in figures:
        if heading != title:
            yield [heading, "", "", ""]
            title = heading
        both = len(by_side) == 2 and by_side["before"] > 0
        ratio, worse = ratio_of(unit, **by_side) if both else (0, False)
        yield [f"  {what}", *(written(by_side[side], unit) if side in by_side else "-" for side in ("before", "now")),
               f"{ratio:.2f}x{'  worse' if worse else ''}" if both else ""]


def compare(root, build, revision, sections, written):
    """Prints the table; returns its rows."""
    def built(*targets):
        done = subprocess.run([root / "test/revision", revision, *targets], check=True, stdout=subprocess.PIPE, text=True)
        return pathlib.Path(done.stdout.strip())

    before = built()
    theirs, ours = ask(before, before / "build"), ask(root, build)
    built(*theirs["programs"])
    sides = {"before": (before, before / "build"), "now": (root, build)}
    lines, found = [["", "before", "now", "now / before"]], []
    for section in sections or list(dict.fromkeys(ours["sections"] + theirs["sections"])):
        print(f"== {section}", file=sys.stderr, flush=True)
        figures, none = measured(sides, section)
        lines += lines_of(section, figures, none, written)
        found += [{"section": s, "what": what, "unit": unit, **by_side} for s, what, unit, by_side in figures]
    widths = [max(len(line[i]) for line in lines if i or line[0].startswith("  ")) for i in range(3)]
    print(f"before: {revision}. Figures are the best of {TURNS} turns; {', '.join(sorted(ONCE))} have one. ms are CPU time.")
    for name, *cells in lines:
        print("  ".join([name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:])), cells[2]]).rstrip())
    return found


if __name__ == "__main__":
    print("\n" + json.dumps(measure(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])))

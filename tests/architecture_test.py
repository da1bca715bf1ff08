#!/usr/bin/env python3
"""Holds the tree to docs/architecture.md. Fails on

* an include that is not one of the edges below, in tests too, and an edge that nobody uses;
* a table of rooms in docs/architecture.md that shows other edges;
* a public header that shows a third-party type, and a standard header that core may not use;
* a *_test.cc that no CMake file names;
* a feature that docs/metrics.md does not list with the same unit and range;
* a word, a name or a path that was replaced by another (REPLACED, NAMELESS);
* a file or a docs page that a comment or a page cites and that is not there;
* a line of docs longer than 100 characters, except in tables and code.

usage: architecture_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

# room -> rooms it may include. Every room may include itself and core.
ALLOWED = {
    "core": set(),
    "job": set(),
    "host": set(),
    "policies": set(),
    "ppo": {"host"},
    "simulator": {"job"},
    "monitor": {"host"},
    "testbed": {"job", "host", "simulator"},
    "arbitrator": {"ppo", "host"},
    "record": {"job", "host", "arbitrator"},
    "evaluation": {"job", "host", "simulator", "arbitrator", "record"},
    "page": {"host", "simulator", "ppo", "record", "evaluation"},
    "rpc": {"arbitrator", "monitor"},  # the client library measures
    "dashboard": {"host", "page", "record", "rpc"},
    "training": {"job", "host", "simulator"},
    "cli": {"job", "host", "policies", "ppo", "simulator", "monitor", "testbed", "arbitrator",
            "record", "evaluation", "page", "rpc", "dashboard", "training"},
}
# Third-party headers a room's *public headers* may show.
PUBLIC_THIRD_PARTY = {"cli": {"CLI/CLI.hpp", "nlohmann/json.hpp"}, "record": {"nlohmann/json.hpp"},
                      "evaluation": {"nlohmann/json.hpp"}, "page": {"nlohmann/json.hpp"},
                      "dashboard": {"nlohmann/json.hpp"}}
NOT_IN_CORE = re.compile(
    r"^(thread|mutex|chrono|fstream|filesystem|iostream|future|condition_variable)$")

# One word per concept: what is not written any more -> what to write instead.
REPLACED = {
    # who does it
    r"\bcouriers?\b": "AdvisorThread, the thread of a RemoteAdvisor",
    r"\bclerks?\b": "record writer",
    r"\bforgives?\b": "reset",
    r"\bcoordinators?\b": "arbitrator",
    # batches
    r"batch_?size": "local_batch, micro_batch or global_batch",
    r"\b(total|effective|overall) batch": "global batch",
    r"\b(per-worker|worker's own) batch": "local batch",
    r"(?<!-)\bmicro-?batch": "micro batch (the flag is --micro-batch)",
    r"\bmini[- ]batch": "minibatch (of a PPO update), local or global batch (of a job)",
    # pages and places that a reader does not have
    r"\bDESIGN(\.md| section)": "docs/architecture.md, or the page of docs/ that says it",
    r"(?<![\w.}])/(work|root|home)/\w": "a path that does not depend on the machine",
    r"\b(TODO|FIXME|XXX)\b": "the finished thing",
}
# Words of a file's or folder's name that do not say what it holds.
NAMELESS = {"util", "utils", "common", "helpers", "manager", "managers", "misc", "stuff"}
# What the words are looked for in. In python/ a batch_size is an argument of PyTorch's.
FOLDERS = ["dynamix", "docs", "tests", "benchmarks", "examples", "cmake", "scripts", "scenarios",
           "workloads", "python"]
TEXTS = {".h", ".cc", ".c", ".py", ".proto", ".md", ".toml", ".txt", ".cmake", ".sh", ".in", ""}

LONGEST_LINE = 100
failures = []
used_edges = set()


def fail(path, line, message):
    failures.append(f"{path}:{line}: {message}")


def includes(path):
    for number, text in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#include\s+(<([^>]+)>|"([^"]+)")', text)
        if match:
            yield number, match.group(2) or match.group(3), bool(match.group(3))


def is_test(path):
    return "testing" in path.parts or path.stem.endswith(("_test", "_fuzz"))


PRIVATE_HEADER = "A private header of this room"  # says so in its head: only .cc files and others like it include it


def is_private(path):
    return path.suffix == ".h" and PRIVATE_HEADER in path.read_text()


def check_project_include(room, path, name, line, header, root):
    target = header.split("/")[1]
    used_edges.add((room, target))
    if target not in {room, "core"} | ALLOWED[room]:
        fail(name, line, f"room {room} may not include {header}")
    if "testing" in header.split("/") and not is_test(path):
        fail(name, line, f"includes {header}, a test kit")
    made = header.endswith((".pb.h", ".skel.h")) or (root / (header + ".in")).exists()
    public = path.suffix == ".h" and not is_private(path)
    if public and (root / header).exists() and is_private(root / header):
        fail(name, line, f"{header} is private to its room: no public header includes it")
    if not (root / header).exists() and not made:
        fail(name, line, f"includes {header}, which does not exist")


def check_other_include(room, path, name, line, header):
    if is_test(path):
        return
    third_party = "/" in header and header not in PUBLIC_THIRD_PARTY.get(room, set())
    if room == "core" and ("/" in header or header.endswith(".h") or NOT_IN_CORE.match(header)):
        fail(name, line, f"core is std only, without I/O, threads or clock: {header}")
    elif path.suffix == ".h" and third_party and not is_private(path):
        fail(name, line, f"a public header shows third-party {header}")


def check_room(room, folder, root):
    if room not in ALLOWED:
        fail(folder.relative_to(root), 0, "a room that ALLOWED does not list")
        return
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        name = path.relative_to(root)
        for line, header, quoted in includes(path):
            if header.startswith("dynamix/"):
                check_project_include(room, path, name, line, header, root)
            elif quoted:
                fail(name, line, f"write project includes from the root: {header}")
            else:
                check_other_include(room, path, name, line, header)


# python/bindings wires rooms as cli does, but PyTorch brings its own libtorch.
NOT_IN_BINDINGS = {"training", "page"}
NAMES_OF_CLI = {"dynamix/cli/data_folder.h", "dynamix/cli/find_policy.h"}


def check_bindings(root):
    for path in sorted((root / "python" / "bindings").glob("*")):
        name = path.relative_to(root)
        for line, header, quoted in includes(path):
            target = header.split("/")[1] if header.startswith("dynamix/") else ""
            if target in NOT_IN_BINDINGS or target == "cli" and header not in NAMES_OF_CLI:
                fail(name, line, f"bindings may not include {header}")
            if header.startswith(("torch/", "ATen/")):
                fail(name, line, "bindings may not link libtorch: PyTorch brings its own")


def check_edges_needed():
    for room, targets in ALLOWED.items():
        for target in sorted(targets):
            if (room, target) not in used_edges:
                fail("tests/architecture_test.py", 0, f"nobody in {room} includes {target} any more")


def check_rooms_documented(root):
    """docs/architecture.md names every room once in its table, with the edges of ALLOWED."""
    text = (root / "docs/architecture.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\w, ]+) \|", text, re.MULTILINE))
    for room, targets in ALLOWED.items():
        edges = {"all"} if room == "cli" else {"nothing"} if room == "core" else {"core"} | targets
        if set(rows.get(room, "").split(", ")) != edges:
            fail("docs/architecture.md", 0, f"room {room}: the table should allow {sorted(edges)}")


def check_tests_registered(root):
    cmake = "\n".join(p.read_text() for p in [*root.rglob("CMakeLists.txt"), *root.rglob("*.cmake")]
                      if "build" not in p.relative_to(root).parts[:1])
    for path in root.glob("dynamix/**/*_test.cc"):
        if path.name not in cmake:
            fail(path.relative_to(root), 0, "no CMake file names this test")


def check_metrics_documented(root):
    """docs/metrics.md has one line per feature, with the same unit and range as features.cc."""
    source = (root / "dynamix/core/features.cc").read_text()
    rows = re.findall(r'\{"(\w+)",\s*"(\w+)",\s*(-?[\d.]+),\s*(-?[\d.]+),\s*k(\w+)', source)
    if len(rows) < 20:
        fail("dynamix/core/features.cc", 0, f"found only {len(rows)} features: has the table moved?")
    documented = (root / "docs/metrics.md").read_text()
    for name, unit, low, high, family in rows:
        line = f"| `{name}` | {unit} | [{float(low):g}, {float(high):g}] | {family.lower()} |"
        if line not in documented:
            fail("docs/metrics.md", 0, f"misses the line starting  {line}")


def check_fields_documented(root):
    """docs/metrics.md names every measurement of a report."""
    source = (root / "dynamix/core/report_fields.h").read_text()
    names = re.findall(r"^ +FIELD\((\w+),", source, re.M)
    if len(names) < 20:
        fail("dynamix/core/report_fields.h", 0, f"found only {len(names)} fields: has the list moved?")
    documented = (root / "docs/metrics.md").read_text()
    for name in names:
        if not re.search(rf"^\| .*`(\w+\.)?{name}`", documented, re.M):
            fail("docs/metrics.md", 0, f"does not name the report's field {name}")


def texts(root):
    """Every text of the project but this one, which must name the words."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if (path.is_file() and path.suffix in TEXTS and "__pycache__" not in path.parts
                    and path != pathlib.Path(__file__).resolve()):
                yield path
    yield from sorted(root.glob("*.md"))
    yield root / "CMakeLists.txt"


def check_words(root):
    patterns = [(re.compile(word, re.IGNORECASE if word.islower() else 0), instead)
                for word, instead in REPLACED.items()]
    for path in texts(root):
        name = path.relative_to(root)
        # `batch_size` is PyTorch's word.
        python = "python" in str(name) or str(name) == "README.md"
        for word in re.split(r"[/_.\-]", str(name).lower()):
            if word in NAMELESS:
                fail(name, 0, f"'{word}' in a name does not say what it holds")
        for number, text in enumerate(path.read_text().splitlines(), 1):
            for pattern, instead in patterns:
                match = pattern.search(text)
                if match and not (python and "batch" in match.group()):
                    fail(name, number, f"'{match.group()}': write {instead}")


def check_citations(root):
    """Pages and files that are cited exist."""
    rooms = "|".join(ALLOWED)
    page = re.compile(r"\bdocs/[\w.-]+\.md\b")
    header = re.compile(rf"(?<![\w/.])(?:dynamix/)?((?:{rooms})/[\w/]+\.(?:h|cc|proto|bpf\.c))\b")
    for path in texts(root):
        name = path.relative_to(root)
        for number, text in enumerate(path.read_text().splitlines(), 1):
            for cited in page.findall(text):
                if not (root / cited).exists():
                    fail(name, number, f"cites {cited}, which does not exist")
            for cited in header.findall(text):
                file = root / "dynamix" / cited
                if not file.exists() and not file.with_name(file.name + ".in").exists():
                    fail(name, number, f"cites {cited}, which does not exist")


def check_pages(root):
    """Links of Markdown pages lead somewhere, and their lines are short."""
    for path in [*sorted(root.glob("*.md")), *sorted((root / "docs").glob("*.md"))]:
        name, code = path.relative_to(root), False
        for number, text in enumerate(path.read_text().splitlines(), 1):
            if text.lstrip().startswith("```"):
                code = not code
            if code:
                continue
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if "://" not in link and not (path.parent / link).exists():
                    fail(name, number, f"links to {link}, which does not exist")
            breakable = not text.startswith(("|", "![")) and "://" not in text
            if len(text) > LONGEST_LINE and breakable:
                fail(name, number, f"{len(text)} characters: wrap at {LONGEST_LINE}")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    for folder in sorted((root / "dynamix").iterdir()):
        if folder.is_dir():
            check_room(folder.name, folder, root)
    check_bindings(root)
    check_edges_needed()
    check_rooms_documented(root)
    check_tests_registered(root)
    check_metrics_documented(root)
    check_fields_documented(root)
    check_words(root)
    check_citations(root)
    check_pages(root)
    for line in failures:
        print(line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Reads the include lines and fails on an edge the design forbids, on a public header that shows a third-party
type, on a *_test.cc that no CMake file names, and on a word the design replaced by another.

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
    "record": {"job", "host", "simulator", "arbitrator"},
    "evaluation": {"job", "simulator", "arbitrator", "record"},
    "page": {"job", "host", "simulator", "ppo", "record", "evaluation"},
    "rpc": {"arbitrator"},
    "training": {"job", "host", "simulator"},
    "cli": {"job", "host", "policies", "ppo", "simulator", "monitor", "testbed", "arbitrator",
            "record", "evaluation", "page", "rpc", "training"},
}
# Third-party headers a room's *public headers* may show.
PUBLIC_THIRD_PARTY = {"cli": {"CLI/CLI.hpp", "nlohmann/json.hpp"}, "record": {"nlohmann/json.hpp"},
                      "evaluation": {"nlohmann/json.hpp"}}
CORE_STANDARD_ONLY = re.compile(r"^(thread|mutex|chrono|fstream|filesystem|iostream|future|condition_variable)$")

failures = []


def fail(path, line, message):
    failures.append(f"{path}:{line}: {message}")


def includes(path):
    for number, text in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#include\s+(<([^>]+)>|"([^"]+)")', text)
        if match:
            yield number, match.group(2) or match.group(3), bool(match.group(3))


def is_test(path):
    return "testing" in path.parts or path.stem.endswith(("_test", "_fuzz"))


PRIVATE_HEADER = "A private header of this room"  # says so in its head: only .cc files include it


def is_private(path):
    return path.suffix == ".h" and PRIVATE_HEADER in path.read_text()


def check_room(room, folder, root):
    if room not in ALLOWED:
        fail(folder.relative_to(root), 0, "a room the design does not list (tests/architecture_test.py)")
        return
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        name = path.relative_to(root)
        for line, header, quoted in includes(path):
            if header.startswith("dynamix/"):
                target = header.split("/")[1]
                if target not in {room, "core"} | ALLOWED[room] and not is_test(path):
                    fail(name, line, f"room {room} may not include {header}")
                made = header.endswith((".pb.h", ".skel.h")) or (root / (header + ".in")).exists()
                if path.suffix == ".h" and (root / header).exists() and is_private(root / header):
                    fail(name, line, f"{header} is private to its room's .cc files")
                if not (root / header).exists() and not made:
                    fail(name, line, f"includes {header}, which does not exist")
            elif quoted:
                fail(name, line, f"write project includes from the root: {header}")
            elif is_test(path):
                continue
            elif room == "core" and ("/" in header or header.endswith(".h") or CORE_STANDARD_ONLY.match(header)):
                fail(name, line, f"core is std only, without I/O, threads or clock: {header}")
            elif is_private(path):
                continue
            elif path.suffix == ".h" and "/" in header and header not in PUBLIC_THIRD_PARTY.get(room, set()):
                fail(name, line, f"a public header shows third-party {header}")


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


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    for folder in sorted((root / "dynamix").iterdir()):
        if folder.is_dir():
            check_room(folder.name, folder, root)
    check_tests_registered(root)
    check_metrics_documented(root)
    check_fields_documented(root)
    for line in failures:
        print(line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

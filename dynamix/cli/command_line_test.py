#!/usr/bin/env python3
"""What all commands share: examples and --json everywhere, the manual page, completion in real shells, the doctor, lines that
fit the terminal, and folders that are not runs.

usage: command_line_test.py DYNAMIX
"""
import fcntl
import json
import os
import pathlib
import pty
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios

DYNAMIX = sys.argv[1]
WITHOUT_JSON = {"completion bash", "completion zsh", "completion fish"}  # they print a script
SIM = ["train", "--backend", "sim", "--workload", "lenet_fashion", "--cluster", "demo", "--workers", "4", "--target", "0.8"]


def run(*words, program=DYNAMIX, **more):
    return subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          **more)


def on_terminal(*words, columns=80, **variables):
    """Everything a command says on a terminal of so many columns."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([DYNAMIX, *map(str, words)], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                               env={**os.environ, "TERM": "xterm", **variables})
    os.close(terminal)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the last writer is gone
            break
        if not part:
            break
        text += part
    os.close(master)
    assert process.wait() == 0, text.decode()
    return text.decode().replace("\r\n", "\n")


def leaves(command, path=""):
    for inner in command["commands"]:
        name = f"{path} {inner['name']}".strip()
        if inner["commands"]:
            assert "Example" in inner["footer"], name
            yield from leaves(inner, name)
        else:
            yield name, inner


def check_definitions(definitions):
    commands = dict(leaves(definitions))
    assert {"train", "compare", "policy show", "list models", "doctor"} <= commands.keys(), commands.keys()
    for name, command in commands.items():
        flags = {each for flag in command["flags"] for each in flag["names"]}
        assert "Example" in command["footer"], f"{name} has no example"
        assert "--json" in flags or name in WITHOUT_JSON, f"{name} has no --json"
        assert all(flag["description"] for flag in command["flags"]), name
    backend = [flag for flag in commands["train"]["flags"] if "--backend" in flag["names"]][0]
    assert backend["choices"] == ["sim", "virtual", "live"] and backend["default"] == "virtual", backend
    return commands


def check_manual(commands):
    page = run("manual").stdout
    for name, command in commands.items():
        assert f'"dynamix {name}"' in page, name
        for flag in command["flags"]:
            for each in flag["names"]:
                assert each == "--help" or each == "-h" or each.replace("-", "\\-") in page, (name, each)
    if shutil.which("man") is None:
        return print("skipped in part: no man to read the page with")
    shown = run("-l", "-", program="man", input=page, env={**os.environ, "MANROFFOPT": "-ww", "MANPAGER": "cat"})
    assert shown.returncode == 0 and not shown.stderr, shown.stderr
    assert "EXIT STATUS" in shown.stdout


def check_bash(work):
    script = work / "completion.bash"
    script.write_text(run("completion", "bash").stdout)

    def offered(*words):
        asked = (f"PATH={pathlib.Path(DYNAMIX).parent}:$PATH; source {script}; COMP_WORDS=(dynamix {' '.join(words)} ''); "
                 f"COMP_CWORD={len(words) + 1}; _dynamix; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        return run("-c", asked, program="bash").stdout.split()

    assert {"train", "compare", "doctor", "--version"} <= set(offered())
    assert {"show", "export"} <= set(offered("policy"))
    assert {"--workload", "--policy"} <= set(offered("train"))
    assert offered("train", "--backend") == ["sim", "virtual", "live"]
    assert "goodput" in offered("evaluate", "--policies") and "mixed" in offered("train", "--cluster")
    assert offered("launch", "-n", "2", "--") == [], "the program's own words"


def check_other_shells(work):
    for shell in ("zsh", "fish"):
        script = work / f"completion.{shell}"
        script.write_text(run("completion", shell).stdout)
        if shutil.which(shell) is None:
            print(f"skipped in part: no {shell} to try its completion")
            continue
        assert run("-n", script, program=shell).returncode == 0, shell
    if shutil.which("fish"):
        variables = {**os.environ, "HOME": str(work), "PATH": f"{pathlib.Path(DYNAMIX).parent}:{os.environ['PATH']}"}
        for line, word in {"dynamix policy sh": "show", "dynamix train --backend v": "virtual", "dynamix doct": "doctor"}.items():
            done = run("-c", f"source {work / 'completion.fish'}; complete -C '{line}'", program="fish", env=variables)
            assert word in done.stdout.split(), (line, done.stdout, done.stderr)


def check_doctor():
    done = run("doctor", "--json", "--listen", "127.0.0.1:0")
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["bad"] else 0), done.stderr
    states = {finding["subject"]: finding["state"] for finding in found["findings"]}
    assert {"training", "matrix products", "policies", "data set cifar10", "cgroups", "network metrics", "emulated clusters", "GPU metrics",
            "certificates", "arbitrator's port", "clock", "open files"} <= states.keys(), states
    assert all(finding["remedy"] for finding in found["findings"] if finding["state"] != "good"), found
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        text = run("doctor", "--listen", address).stdout
        assert f"{address}: Address already in use" in text and "to mend it: ss -ltnp" in text, text
        refused = run("launch", "-n", "1", "--port", address.split(":")[1], "--", "true")
        assert refused.returncode == 2 and "a port that is free (Address already in use)" in refused.stderr, refused.stderr


def check_terminal(work):
    for columns in (60, 100):
        for words in (["list", "workloads"], ["train", "--help"]):
            lines = on_terminal(*words, columns=columns).splitlines()
            long = [line for line in lines if len(line) > columns and "Example" not in line and not line.startswith(("  dynamix", "Usage:"))]
            # One word may be longer than its column: a flag with its range.
            assert len([line for line in long if len(line.split()) > 3]) == 0, (columns, long)
    assert "\033[3" in on_terminal("doctor") and "\033[" not in on_terminal("doctor", NO_COLOR="1")
    assert "\033[" not in run("doctor").stdout
    text = on_terminal(*SIM, "--run", work / "run", columns=60)
    before, table = text.split("policy", 1)
    assert before.endswith("\n") and "train [" in before, "the progress line ends before the table begins"
    assert "train [" not in table and all(len(line) <= 60 for line in table.splitlines()[1:-1]), table


def check_folders(work):
    mine = work / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("all of it")
    for words in (SIM, ["compare", *SIM[1:], "--policies", "static"], ["learn", "--updates", "1"],
                  ["arbitrator", "--listen", "127.0.0.1:0"]):
        refused = run(*words, "--run", mine)
        assert refused.returncode == 2 and "holds something else than a run" in refused.stderr, (words, refused.stderr)
        assert [each.name for each in mine.iterdir()] == ["thesis.txt"], words


def check_values(work, commands):
    """What is no value is refused with exit code 2, and named by the flag it was given to."""
    numbers = [(name, flag["names"][0]) for name, command in commands.items() for flag in command["flags"]
               if flag["value"].startswith("FLOAT")]
    assert ("train", "--target") in numbers and len(numbers) > 20, numbers
    for command, flag in numbers:
        refused = run(*command.split(), flag, "nan")
        assert refused.returncode == 2 and f"{flag}: Value nan is not a number" in refused.stderr, (command, flag, refused)
    for words, told in ((["list"], "a command is missing: one of policies, workloads, scenarios, models, datasets"),
                        (["list", "data"], "data is not known; did you mean datasets?"),
                        (["tran"], "tran is not known; did you mean train?"), ([], "a command is missing: one of evaluate")):
        refused = run(*words)
        assert refused.returncode == 2 and refused.stderr.startswith(f"dynamix: {told}"), (words, refused)
    serve = ["arbitrator", "--listen", "127.0.0.1:0"]
    for wrong in ("127.0.0.1:70000", "127.0.0.1:", "127.0.0.1", ":7040", "127.0.0.1:x", "127.0.0.1:-1"):
        for words in (["arbitrator", "--listen", wrong], [*serve, "--metrics", wrong], [*serve, "--dashboard", wrong],
                      ["dashboard", work, "--listen", wrong]):
            refused = run(*words)
            expected = f"{words[-2]} = {wrong} is not allowed: expected HOST:PORT with a port of 0 to 65535"
            assert refused.returncode == 2 and expected in refused.stderr, (words, refused)
    for flag, value in (("--lease", "0"), ("--round-deadline", "-1"), ("--max-jobs", "0"), ("--max-connections", "0"), ("--seed", "-1"),
                        ("--valid-windows", "0"), ("--guard-rounds", "0"), ("--guard-tolerance", "2"), ("--guard-hold", "0")):
        refused = run(*serve, flag, value)
        assert refused.returncode == 2 and f"{flag}: Value {value} not in range" in refused.stderr, (flag, refused)
    refused = run(*serve, "--swap", "")
    assert refused.returncode == 2 and "--swap = '' is not allowed" in refused.stderr, refused
    os.mkfifo(work / "pipe")
    (work / "long").write_text("x" * 2000)
    for flag in ("--token-file", "--tls-ca"):
        for path, why in ((work / "pipe", "not a regular file"), ("/dev/zero", "not a regular file"), (work, "not a regular file"),
                          (work / "none", "No such file or directory")):
            refused = run(*serve, flag, path)
            assert refused.returncode == 2 and f"{flag}: cannot read '{path}': {why}" in refused.stderr, (flag, path, refused)
    refused = run(*serve, "--token-file", work / "long")
    assert refused.returncode == 2 and "larger than 1024 bytes" in refused.stderr, refused
    for flag in ("--cluster", "--workload"):
        refused = run("train", "--backend", "sim", "--no-record", flag, "/dev/zero")
        assert refused.returncode == 2 and "/dev/zero: a device, not a file" in refused.stderr, refused
    refused = run("policy", "show", work / "pipe")
    assert refused.returncode != 0 and "not a regular file" in refused.stderr, refused
    (work / "spaces").write_text("   \n")
    refused = run(*serve, "--token-file", work / "spaces")
    assert refused.returncode == 2 and "no space at its ends" in refused.stderr, refused
    check_outputs(work)


def check_outputs(work):
    """What is written takes no device's place, nor that of what it is made from."""
    os.symlink("/dev/null", work / "null")
    refused = run("policy", "export", "default", "--format", "onnx", "--out", work / "null")
    assert refused.returncode == 1 and f"cannot write '{work / 'null'}': a device, not a file" in refused.stderr, refused
    assert (work / "null").is_symlink()
    policy = work / "policy.safetensors"
    shutil.copy(pathlib.Path(__file__).parents[2] / "policies/default.safetensors", policy)
    before = policy.read_bytes()
    refused = run("policy", "export", policy, "--format", "onnx", "--out", work / "." / policy.name)
    assert refused.returncode == 2 and "another file than the policy itself" in refused.stderr, refused
    assert policy.read_bytes() == before
    refused = run("export", work / "none", "--csv", "-")
    assert refused.returncode == 2 and refused.stdout == "", refused
    refused = run("export", "--csv", "-")
    assert refused.returncode == 2 and refused.stderr.startswith("dynamix: "), refused


def main():
    commands = check_definitions(json.loads(run("manual", "--json").stdout))
    check_manual(commands)
    check_doctor()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check_bash(work)
        check_other_shells(work)
        check_terminal(work)
        check_folders(work)
        check_values(work, commands)


main()

"""Hosts of a cluster on one machine, for tests: each has a name, an address, a loopback, a process table and an /etc/hosts of
its own, and shares nothing with the others but the file system and a switch between them. Ending a host ends every process
on it, as pulling its plug does; none of it has a name on the machine, and it ends with the test, also by kill -9.

Needs root and a kernel with network namespaces; refusal() says what is missing.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

PATIENCE_S = 200  # only a fault takes so long
NETWORK = "10.77.0"


def wait_until(condition, what):
    """Returns what the condition does once it is true; `what` is asked for when it never is."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, what()
        time.sleep(0.02)
    return found


def _end_with_the_test():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Host:
    """One process tree with namespaces of its own."""

    def __init__(self, name, address, hosts_file):
        self.name, self.address = name, address
        # A mount of one host is not seen by the others; --mount-proc shows its own processes.
        setup = f"hostname {name} && mount --bind {hosts_file} /etc/hosts && ip link set lo up && echo up && exec sleep infinity"
        self.process = subprocess.Popen(["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--uts", "--ipc",
                                         "--mount", "--", "sh", "-c", setup],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=_end_with_the_test)
        said = self.process.stdout.readline()
        assert said == "up\n", f"no host {name}: {said}"
        self.first = child_of(self.process.pid)  # its process 1

    def inside(self, *words, folder="/"):
        """The words, to be run on this host."""
        return ["nsenter", "-t", str(self.first), "-n", "-u", "-i", "-m", "-p", f"--wdns={folder}", "--", *map(str, words)]

    def start(self, *words, folder="/", **how):
        return subprocess.Popen(self.inside(*words, folder=folder), preexec_fn=_end_with_the_test, **how)

    def run(self, *words, **how):
        return subprocess.run(self.inside(*words), check=True, timeout=PATIENCE_S, **how)

    def pull_the_plug(self):
        """Without a word: the cable first, so that no connection is closed."""
        if self.process.poll() is None:
            subprocess.run(self.inside("ip", "link", "set", "eth0", "down"), stderr=subprocess.DEVNULL)
            self.process.kill()
        self.process.wait()
        # Its processes die with its process 1; the kernel says when.
        wait_until(lambda: not pathlib.Path(f"/proc/{self.first}").exists(), lambda: f"host {self.name} does not end")


class Hosts:
    """Hosts by name, on one switch; in a `with`."""

    def __init__(self, folder, *names):
        addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, 1)}
        self.by_name, self.switch = {}, None

        def hosts_file(own):
            """As Debian's installer writes it: its own name is not an address that others know."""
            file = pathlib.Path(folder) / f"hosts-{own}"
            file.write_text("127.0.0.1 localhost\n" + "".join(
                f"{'127.0.1.1' if name == own else address} {name}\n" for name, address in addresses.items()))
            return file

        try:
            self.switch = Host("switch", "", hosts_file("switch"))
            self.switch.run("sh", "-c", "ip link add switch type bridge && ip link set switch up")
            for name, address in addresses.items():
                self.by_name[name] = host = Host(name, address, hosts_file(name))
                subprocess.run(["ip", "link", "add", "name", f"to-{name}", "netns", str(self.switch.first), "type", "veth", "peer", "name", "eth0",
                                "netns", str(host.first)], check=True)
                self.switch.run("ip", "link", "set", f"to-{name}", "master", "switch", "up")
                host.run("sh", "-c", f"ip addr add {address}/24 dev eth0 && ip link set eth0 up")
        except BaseException:
            self.close()
            raise

    def __getitem__(self, name):
        return self.by_name[name]

    def cut(self, name):
        """Pulls the host's cable; it and its processes go on."""
        self.switch.run("ip", "link", "set", f"to-{name}", "down")

    def close(self):
        for host in [*self.by_name.values(), self.switch]:
            if host:
                host.pull_the_plug()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def child_of(pid):
    """The one child of a process: what nsenter or unshare started."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return int(wait_until(lambda: children.read_text().split(), lambda: f"process {pid} has no child")[0])


def tell(process, number):
    """Sends a signal to what was started on a host."""
    os.kill(child_of(process.pid), number)


def refusal():
    """Why there can be no hosts here, or nothing."""
    if os.geteuid() != 0:
        return "hosts as network namespaces need root"
    for tool in ("unshare", "nsenter", "ip"):
        if not shutil.which(tool):
            return f"{tool} is not here"
    tried = subprocess.run(["unshare", "--fork", "--pid", "--mount-proc", "--net", "--uts", "--ipc", "--mount", "--", "sh", "-c",
                            "hostname trial && ip link add trial type bridge"], stderr=subprocess.PIPE, text=True)
    return "" if tried.returncode == 0 else f"this kernel refuses namespaces: {tried.stderr.strip()}"

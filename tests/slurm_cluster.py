"""A Slurm cluster on one machine, for tests: a controller and nodes on emulated hosts, with a key, a configuration, ports and
folders of their own. What the machine has of Slurm (/etc/slurm, services) is neither read nor changed.
"""
import os
import pathlib
import shutil
import subprocess

from emulated_hosts import PATIENCE_S, Hosts, refusal, wait_until

HEAD = "head"
CONFIGURATION = """
ClusterName=trial
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until the credentials of its former life have expired: 2 minutes unless told.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
# A node that is silent for so long is down. The least that is safe where others use the machine too.
SlurmdTimeout=10
KillWait=60
MessageTimeout=60
SchedulerParameters=sched_interval=1,sched_min_interval=100000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
SlurmdParameters=config_overrides
"""


def missing():
    """Why there can be no Slurm here, or nothing."""
    for tool in ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "scancel"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin"):
            return f"{tool} is not here (packages slurm-wlm and munge)"
    return refusal()


class Slurm:
    """In a `with`. Nodes are called n1, n2, ..."""

    def __init__(self, folder, nodes):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        (self.folder / "munge").mkdir(mode=0o755)
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        nodes_line = f"NodeName=n[1-{nodes}] CPUs=4 State=UNKNOWN\n"
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(folder=self.folder) + nodes_line)
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration), "PATH": os.environ["PATH"] + ":/usr/sbin"}
        self.hosts = Hosts(self.folder, HEAD, *self.nodes)
        try:
            self._daemon(HEAD, "munged", "--foreground", "--force", "--socket", self.folder / "munge/socket", "--key-file", key,
                         "--pid-file", self.folder / "munge/pid", "--log-file", self.folder / "munge/log", "--seed-file",
                         self.folder / "munge/seed")
            wait_until((self.folder / "munge/socket").exists, self.logs)
            self._daemon(HEAD, "slurmctld", "-D")
            for node in self.nodes:
                self._daemon(node, "slurmd", "-D")
            wait_until(lambda: self.states() == {"idle"}, self.logs)
        except BaseException:
            self.hosts.close()
            raise

    def _daemon(self, host, *words):
        with open(self.folder / f"{host}-{words[0]}.said", "w") as said:
            self.hosts[host].start(*words, stdout=said, stderr=said, env=self.environment)

    def logs(self):
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-3000:]}"
                         for path in sorted([*self.folder.glob("*.said"), *self.folder.glob("*.log")]))

    def ask(self, *words, folder="/", check=True, environment=None):
        """What a command of Slurm says, on the controller's host."""
        done = subprocess.run(self.hosts[HEAD].inside(*words, folder=folder), env={**self.environment, **(environment or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0 or not check, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def states(self):
        return set(self.ask("sinfo", "-h", "-N", "-o", "%T", check=False).split())

    def submit(self, script, *words, folder, options=(), environment=None):
        return self.ask("sbatch", "--parsable", *options, script, *words, folder=folder, environment=environment)

    def state(self, job):
        """PENDING, RUNNING, ...; nothing once Slurm has forgotten the job."""
        said = self.ask("scontrol", "-o", "show", "job", job, check=False)
        return next((word.split("=")[1] for word in said.split() if word.startswith("JobState=")), "")

    def rank(self, job, number):
        """The process that is this rank of a step, on whichever host; nothing while there is none."""
        wanted = {f"SLURM_CONF={self.configuration}", f"SLURM_JOB_ID={job}", f"SLURM_PROCID={number}"}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:  # it ended, or is not ours
                continue
            if wanted <= set(variables) and any(variable.startswith("SLURM_STEP_NUM_TASKS=") for variable in variables):
                return int(folder.name)
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hosts.close()

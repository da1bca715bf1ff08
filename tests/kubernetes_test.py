#!/usr/bin/env python3
"""The container recipe and the Kubernetes manifests, without a cluster: every field is one that the API has, with its type;
names that must agree do; the variables of each pod make it the rank that it should be, in the words of rank_place.h; every
flag is one that the commands have; the recipe installs what the programs load. None of it was run on a cluster.

usage: kubernetes_test.py DYNAMIX PYTHON_PACKAGE SOURCE_DIR
"""
import pathlib
import re
import subprocess
import sys

import yaml

PROGRAM, PACKAGE, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(PACKAGE))
from dynamix import _core  # noqa: E402

# What we use of the API (Kubernetes 1.27, training operator 1.7), and what an object must have ("!"). A list of one: many of it.
TEXTS = {str: str}  # any names
SECURITY = {"allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool, "capabilities": {"drop": [str], "add": [str]}}
CONTAINER = {
    "name!": str, "image!": str, "command": [str], "args": [str],
    "env": [{"name!": str, "value": str, "valueFrom": {"fieldRef!": {"fieldPath!": str}}}],
    "ports": [{"name": str, "containerPort!": int}],
    "readinessProbe": {"tcpSocket!": {"port!": (int, str)}},
    "resources": {"requests": TEXTS, "limits": TEXTS}, "securityContext": SECURITY,
    "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool}],
}
POD = {
    "containers!": [CONTAINER], "restartPolicy": str, "subdomain": str, "automountServiceAccountToken": bool,
    "terminationGracePeriodSeconds": int,
    "securityContext": {"runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int, "fsGroup": int,
                        "seccompProfile": {"type!": str}},
    "volumes": [{"name!": str, "secret": {"secretName!": str, "defaultMode": int}, "emptyDir": {},
                 "persistentVolumeClaim": {"claimName!": str}}],
}
NAMED = {"name!": str, "labels": TEXTS}
TEMPLATE = {"metadata": {"labels": TEXTS}, "spec!": POD}
REPLICAS = {"replicas!": int, "restartPolicy": str, "template!": TEMPLATE}
KINDS = {
    ("apps/v1", "Deployment"): {"replicas": int, "strategy": {"type": str}, "selector!": {"matchLabels!": TEXTS},
                                "template!": TEMPLATE},
    ("batch/v1", "Job"): {"completionMode": str, "completions": int, "parallelism": int, "backoffLimit": int,
                          "template!": TEMPLATE},
    ("v1", "Service"): {"clusterIP": str, "publishNotReadyAddresses": bool, "selector": TEXTS,
                        "ports!": [{"name": str, "port!": int, "targetPort": (int, str)}]},
    ("kubeflow.org/v1", "PyTorchJob"): {"pytorchReplicaSpecs!": {"Master!": REPLICAS, "Worker": REPLICAS}},
}


def check(value, schema, where):
    """Asserts that the value is what the schema says."""
    if isinstance(schema, list):
        assert isinstance(value, list) and value, f"{where}: {value!r} is no list"
        for number, each in enumerate(value):
            check(each, schema[0], f"{where}[{number}]")
    elif schema is TEXTS:
        assert isinstance(value, dict) and all(isinstance(text, str) for text in value.values()), f"{where}: {value!r}"
    elif isinstance(schema, dict):
        assert isinstance(value, dict), f"{where}: {value!r} has no fields"
        fields = {name.rstrip("!"): of for name, of in schema.items()}
        for name in schema:
            assert not name.endswith("!") or name[:-1] in value, f"{where} has no {name[:-1]}"
        for name, each in value.items():
            assert name in fields, f"{where}.{name} is not a field that this test knows"
            check(each, fields[name], f"{where}.{name}")
    else:
        assert isinstance(value, schema) and (schema is bool or not isinstance(value, bool)), f"{where}: {value!r} is no {schema}"


def load():
    """Every object of the manifests, by kind and name."""
    objects = {}
    for path in sorted((SOURCE / "packaging/kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            kind = (document["apiVersion"], document["kind"])
            name = f"{path.name}: {kind[1]}"
            check(document, {"apiVersion!": str, "kind!": str, "metadata!": NAMED, "spec!": KINDS[kind]}, name)
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", document["metadata"]["name"]), name
            objects[kind[1], document["metadata"]["name"]] = document["spec"]
    return objects


def check_pod(pod, where):
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in pod["containers"]:
        for mount in container.get("volumeMounts", []):
            assert mount["name"] in volumes, f"{where} mounts {mount['name']}, which is no volume"
        ports = {port["name"] for port in container.get("ports", [])}
        probe = container.get("readinessProbe")
        assert probe is None or probe["tcpSocket"]["port"] in ports, where


def check_flags(words, where):
    """The words after `dynamix`: a command and flags that it has, and files where they are mounted."""
    helped = subprocess.run([PROGRAM, words[0], "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    known = set(re.findall(r"--[a-z][a-z-]+", helped.split("Examples:")[0]))
    flags = {word.split("=")[0] for word in words if word.startswith("--")}
    assert flags and flags <= known, f"{where}: dynamix {words[0]} has no {flags - known}"


def check_arbitrator(objects):
    spec, service = objects["Deployment", "dynamix-arbitrator"], objects["Service", "dynamix-arbitrator"]
    template = spec["template"]
    labels = template["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items() and service["selector"].items() <= labels.items()
    assert spec["replicas"] == 1 and spec["strategy"]["type"] == "Recreate", "two arbitrators would share one name"
    check_pod(template["spec"], "arbitrator")
    container = template["spec"]["containers"][0]
    check_flags(container["args"], "arbitrator")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for port in service["ports"]:
        assert port["port"] == ports[port["targetPort"]] and any(arg.endswith(f":{port['port']}") for arg in container["args"]), port


def check_job(objects):
    job, service = objects["Job", "dynamix-vision"], objects["Service", "dynamix-vision"]
    assert job["completionMode"] == "Indexed" and job["completions"] == job["parallelism"]
    assert service["clusterIP"] == "None" and service["selector"] == {"job-name": "dynamix-vision"}
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure") and pod["subdomain"] == "dynamix-vision"
    check_pod(pod, "job")
    container = pod["containers"][0]
    for index in range(job["completions"]):
        fields = {"metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index),
                  "metadata.labels['controller-uid']": "5f1c"}
        variables = {each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
                     for each in container["env"]}
        place = _core.read_rank_place(variables)
        assert (place.given, place.rank, place.size, place.port) == (True, index, job["completions"], service["ports"][0]["port"])
        # The pod of index 0, by its name under the headless service.
        assert place.address == "dynamix-vision-0." + pod["subdomain"], place.address
    script = container["args"][0]
    subprocess.run(["sh", "-n", "-c", script], check=True)
    check_flags(re.search(r"exec dynamix (.*)", script.replace("\\\n", " "))[1].split(), "job")
    assert "--advisor dynamix-arbitrator:7040" in script and ("Service", "dynamix-arbitrator") in objects


def check_pytorch_job(objects):
    replicas = objects["PyTorchJob", "dynamix-fashion"]["pytorchReplicaSpecs"]
    assert replicas["Master"]["replicas"] == 1
    for name, spec in replicas.items():
        assert [container["name"] for container in spec["template"]["spec"]["containers"]] == ["pytorch"], name
        check_pod(spec["template"]["spec"], name)
        script = spec["template"]["spec"]["containers"][0]["command"][1]
        assert (SOURCE / "examples/python" / pathlib.Path(script).name).exists(), script
    # As the operator sets them.
    place = _core.read_rank_place({"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "dynamix-fashion-master-0", "MASTER_PORT": "23456"})
    assert (place.rank, place.size, place.address) == (2, 4, "dynamix-fashion-master-0")


def check_recipe():
    """Every library that a program names is of a package that the recipe installs; of others, dpkg knows who needs them."""
    recipe = (SOURCE / "packaging/container/Containerfile").read_text()
    installed = set(re.search(r"--no-install-recommends \\\n(.*?)&&", recipe, re.S)[1].replace("\\\n", " ").split())
    part_of_others = {"libc6", "libgcc-s1", "libstdc++6", "libabsl20220623", "libgrpc29"}
    paths = {}
    for program in (PROGRAM, PROGRAM.with_name("dynamix-train"), *PACKAGE.glob("dynamix/_core*.so")):
        header = subprocess.run(["objdump", "-p", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        wanted = set(re.findall(r"NEEDED +(\S+)", header))
        loaded = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        paths |= {library: path for library, path in re.findall(r"(\S+) => (/\S+)", loaded) if library in wanted}
    # Debian's /lib is /usr/lib; dpkg knows a file by the one it was packed under.
    names = [name for path in paths.values() for name in (path, path.removeprefix("/usr"), "/usr" + path)]
    owners = subprocess.run(["dpkg", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    owner = {pathlib.Path(path).name: package for package, path in re.findall(r"^([^:,\s]+)\S*: (\S+)$", owners, re.M)}
    assert len(paths) > 10, paths
    for library in paths:
        assert owner.get(library) in installed | part_of_others, f"{library} is of package {owner.get(library)}"


def main():
    objects = load()
    check_arbitrator(objects)
    check_job(objects)
    check_pytorch_job(objects)
    check_recipe()
    print(f"{len(objects)} objects and the recipe are as the commands and the API want them")


if __name__ == "__main__":
    main()

"""What the REST API tells at a place (`rest PATH?rev=REVISION`), as JSON; nothing where there is none. Trees are those of `nv config show`, with
each interface by itself (assumed: the CLI prints what is alike as one); without a revision it is what `nv show` tells."""

import json
import subprocess
import sys
import urllib.parse

import home

if home.fault("nvued-away") is not None:
    sys.exit("nvued-away")
asked = urllib.parse.urlsplit(sys.argv[1])
words = [word for word in asked.path.split("/") if word]
revision = urllib.parse.parse_qs(asked.query).get("rev", ["operational"])[0]


def hidden(tree):
    return {key: "*" if key in ("password", "hashed-password", "secret") else hidden(value) if isinstance(value, dict) else value for key, value in tree.items()}


def operational():
    if words == ["system"]:
        with open("/proc/uptime") as file:
            return {"build": "Cumulus Linux 5.12.1", "hostname": "leaf1", "uptime": int(float(file.read().split(" ")[0]))}
    if words == ["interface"]:
        return {name: {"type": name.rstrip("0123456789s")} for name in home.data("delivered/model.json")["ports"]}
    ran = subprocess.run(["nv", "show", *words, "-o", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    return json.loads(ran.stdout) if ran.returncode == 0 else None


if revision == "operational":
    found = operational()
else:
    with home.state() as known:
        found = {"applied": known["applied"], "startup": home.startup()}.get(revision)
    for word in words:
        found = found.get(word) if isinstance(found, dict) else None
    if found is None and words in (["qos"], ["interface"]):
        found = {}
    found = hidden(found) if isinstance(found, dict) else found
if found is not None:
    print(json.dumps(found))

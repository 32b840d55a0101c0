"""What the REST API says to one request (`rest METHOD PATH`, the body on standard input): a status of HTTP, and JSON. Trees are those of `nv config show`,
with each interface by itself (assumed: the CLI prints what is alike as one); without a revision it is what `nv show` tells. Revisions are made, patched,
applied, confirmed and saved as CumulusNetworks/docs, NVUE-API.md has it; `state-controls`, `confirm_yes` and the states as gpncfg's `DeployCumuls`."""

import copy
import json
import subprocess
import sys
import urllib.parse

import check
import home
import tree as trees

if home.fault("nvued-away") is not None:
    sys.exit("nvued-away")
method = sys.argv[1]
asked = urllib.parse.urlsplit(sys.argv[2])
words = [urllib.parse.unquote(word) for word in asked.path.split("/") if word]
revision = urllib.parse.parse_qs(asked.query).get("rev", ["operational"])[0]
NAMED = ("applied", "startup", "empty")


class Refused(Exception):
    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


def hidden(tree):
    return {key: "*" if key in ("password", "hashed-password", "secret") else hidden(value) if isinstance(value, dict) else value for key, value in tree.items()}


def link(known, port):
    """Newer releases say `oper-status`; a port of the fault `old-links` says it as older ones."""
    set_ = known["applied"].get("interface", {}).get(port, {}).get("link", {}).get("state", {})
    is_up = (set_ == "up" or (isinstance(set_, dict) and "up" in set_)) and port not in known.get("dark", [])
    if home.fault("old-links") is not None:
        return {"state": {"up" if is_up else "down": {}}}
    return {"admin-status": "up" if "up" in set_ else "down", "oper-status": "up" if is_up else "down"}


def operational(known):
    if words == ["system"]:
        with open("/proc/uptime") as file:
            return {"build": "Cumulus Linux 5.12.1", "hostname": "leaf1", "uptime": int(float(file.read().split(" ")[0]))}
    if words == ["interface"]:
        of = {name: {"type": name.rstrip("0123456789s")} for name in home.MODEL["ports"]}
        return {name: {**one, "link": link(known, name)} if name.startswith("swp") else one for name, one in of.items()}
    return None


def told(known, name):
    if name in NAMED:
        return {"state": known.get("applied_state", "applied") if name == "applied" else "inactive", "transition": {"issue": {}, "progress": ""}}
    if name not in known["revisions"]:
        raise Refused(404, "The requested item does not exist.")
    one = known["revisions"][name]
    issues = {str(n): {"code": "config_invalid", "message": line, "severity": "error"} for n, line in enumerate(one.get("issues", []))}
    said = {key: one[key] for key in ("message", "state-controls") if key in one}
    return {**said, "state": one["state"], "transition": {"issue": issues, "progress": ""}}


def get():
    if words[:1] == ["revision"]:
        with home.state() as known:
            return {name: told(known, name) for name in [*NAMED, *known["revisions"]]} if len(words) == 1 else told(known, words[1])
    if revision == "operational":
        with home.state() as known:
            found = operational(known)
        if found is None:
            ran = subprocess.run(["nv", "show", *words, "-o", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
            found = json.loads(ran.stdout) if ran.returncode == 0 else None
    else:
        with home.state() as known:
            trees_ = {"applied": known["applied"], "startup": home.startup(), **{name: one["tree"] for name, one in known["revisions"].items()}}
            found = trees_.get(revision)
        for word in words:
            found = found.get(word) if isinstance(found, dict) else None
        if found is None and words in (["qos"], ["interface"]):
            found = {}
        found = hidden(found) if isinstance(found, dict) else found
    if found is None:
        raise Refused(404, "The requested item does not exist.")
    return found


def post():
    if words != ["revision"]:
        raise Refused(405, "Method Not Allowed")
    with home.state() as known:
        name = str(known["next"])
        known["next"] += 1
        now = copy.deepcopy(known["applied"])
        known["revisions"][name] = {"state": "pending", "base": now, "tree": copy.deepcopy(now), "user": "rest"}
        return {name: told(known, name)}


def split(tree):
    """What is there without a value is to go."""
    gone, wanted = {}, {}
    for key, value in tree.items():
        if value is None:
            gone[key] = None
        elif isinstance(value, dict) and value:
            below = split(value)
            gone.update({key: below[0]} if below[0] else {})
            wanted.update({key: below[1]} if below[1] else {})
        else:
            wanted[key] = value
    return gone, wanted


def patch_tree(body):
    with home.state() as known:
        one = known["revisions"].get(revision)
        if one is None or one["state"] != "pending":
            raise Refused(404, "The requested item does not exist.")
        tree = copy.deepcopy(one["tree"])
        below = tree
        for word in words:
            below = below.setdefault(word, {})
        gone, wanted = split(body)
        if gone and wanted:
            raise Refused(400, "set and unset in one patch")
        trees.unset_in(below, gone)
        trees.set_in(below, wanted)
        unknown = [line for line in check.complaints(tree) if "is not one of the places" in line]
        if unknown:
            raise Refused(400, unknown[0])
        one["tree"] = tree
        return hidden(body)


def apply(known, name, body):
    one = known["revisions"][name]
    one.update({key: body[key] for key in ("message", "state-controls") if key in body})
    if body.get("auto-prompt", {}).get("ays") != "ays_yes":
        one.update({"state": "ays_fail", "issues": ["Timeout while waiting for client response"]})
        return
    complaints = check.complaints(one["tree"])
    if complaints:
        one.update({"state": "invalid", "issues": complaints})
        return
    one["state"] = "apply"
    seconds = body.get("state-controls", {}).get("confirm", "")
    if home.fault("no-confirm") is not None:
        seconds = ""
    home.nvued(name, name, str(seconds))


def patch_revision(body):
    name, state = words[1], body.get("state")
    with home.state() as known:
        told(known, name)
        if name == "applied" and state == "save":
            try:
                home.save(known["applied"])
                known["applied_state"] = "saved"
            except OSError as error:
                known["applied_state"] = "save_error"
                raise Refused(500, str(error)) from error
        elif name in NAMED:
            raise Refused(400, f"{state} of {name}")
        elif state == "apply" and known["revisions"][name]["state"] == "pending":
            apply(known, name, body)
        elif state in ("confirm_yes", "confirm_no") and known["revisions"][name]["state"] == "confirm":
            known["revisions"][name]["state"] = state
        else:
            raise Refused(400, f"{state} of a revision that is {known['revisions'][name]['state']}")
        return told(known, name)


try:
    if method == "GET":
        status, document = 200, get()
    else:
        sent = json.loads(sys.stdin.read() or "{}")
        if method == "POST":
            status, document = 201, post()
        elif method == "PATCH":
            status, document = 200, patch_revision(sent) if words[:1] == ["revision"] else patch_tree(sent)
        else:
            raise Refused(405, "Method Not Allowed")
except Refused as refused:
    status, document = refused.status, {"status": refused.status, "title": "Bad Request", "detail": str(refused)}
print(status)
print(json.dumps(document))

"""A fake eAPI of Arista EOS (`management api http-commands`), called one by name: `runCmds` over HTTPS, of the commands `enable` and
`bash timeout SECONDS COMMAND`. What it refuses is data (`refusals/eapi.json`). It runs beside the switch and enters it for each command, which
it writes into `commands`; its arguments are those of `switch/https.py`."""

import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../switch")
import https
from https import ENTRY, fault

with open(f"{HERE}/../refusals/eapi.json") as file:
    REFUSALS = json.load(file)


class Refused(Exception):
    def __init__(self, name, **words):
        known = REFUSALS[name]
        self.code, self.what = known["code"], known.get("what")
        self.message = known.get("message")
        self.said = known.get("said", "").format(**words)


def bash(command):
    """EOS hands on what follows `timeout SECONDS`, which is a line of bash, and says what it printed."""
    words = command.split(" ", 3)
    if len(words) < 4 or words[1] != "timeout" or not words[2].isdigit():
        raise Refused("interactive")
    https.log("commands", command)
    line = [*ENTRY, "/bin/bash", "-c", words[3]]
    child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        out, _ = child.communicate(timeout=int(words[2]))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        raise Refused("timed_out") from None
    if child.returncode:
        raise Refused("failed", status=child.returncode)
    return out.decode("utf-8", "replace")


def run(commands, as_text):
    """Results up to the first command that is refused; then why, and which it was."""
    results, privileged = [], False
    for command in commands:
        word = command.split(" ")[0]
        try:
            if command == "enable":
                privileged, said = True, ""
            elif word == "bash" and not privileged:
                raise Refused("privileged")
            elif word == "bash" and fault("denied") is not None:
                raise Refused("denied", command=command)
            elif word == "bash":
                said = bash(command)
            else:
                raise Refused("invalid", word=word)
        except Refused as refused:
            return results, (refused, len(results) + 1, command)
        results.append(({"output": said} if said else {}) if as_text else {"messages": said.splitlines()})
    return results, None


def answer(body):
    try:
        asked = json.loads(body)
    except ValueError:
        return None, Refused("parse"), None
    if not isinstance(asked, dict) or asked.get("jsonrpc") != "2.0" or "id" not in asked:
        return None, Refused("request"), None
    parameters = asked.get("params")
    if asked.get("method") != "runCmds":
        return asked["id"], Refused("method"), None
    fine = isinstance(parameters, dict) and parameters.get("version") == 1 and parameters.get("format", "json") in ("json", "text")
    commands = parameters.get("cmds") if fine else None
    if not isinstance(commands, list) or not all(isinstance(command, str) for command in commands):
        return asked["id"], Refused("parameters"), None
    return asked["id"], *run(commands, parameters.get("format") == "text")


class Handler(https.Handler):
    refusals = REFUSALS["http"]

    def do_GET(self):
        self.refuse("method" if self.path == "/command-api" else "elsewhere")

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(min(length, self.refusals["too_large"]["most"] + 1))
        if self.path != "/command-api" or fault("elsewhere") is not None:
            return self.refuse("elsewhere")
        if length > self.refusals["too_large"]["most"]:
            return self.refuse("too_large")
        if not self.is_known():
            return self.refuse("unauthorized")
        status = fault("status")
        if status is not None:
            return self.reply(int(status), b"<html><body>Bad Gateway</body></html>", "text/html")
        identity, results, refused = answer(body)
        said = {"jsonrpc": "2.0", "id": identity}
        if isinstance(results, Refused):
            said["error"] = {"code": results.code, "message": results.message}
        elif refused:
            why, number, command = refused
            count = len(json.loads(body)["params"]["cmds"])
            message = f"CLI command {number} of {count} '{command}' failed: {why.what}"
            said["error"] = {"code": why.code, "message": message, "data": [*results, {"errors": [why.said]}]}
        else:
            said["result"] = results
        self.reply(200, json.dumps(said).encode())


https.serve(Handler)

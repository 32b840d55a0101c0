"""A stand-in for the REST API of NVUE, called one by name: GET of configurations and of what `nv show` tells, over HTTPS. It has no revisions: whoever
asks for a change is refused, and written into `changes`. It runs beside the switch and enters it for each answer (`lib/rest.py`); its arguments are
those of `switch/https.py`. Places: CumulusNetworks/docs, content/cumulus-linux-512/.../NVUE-API.md."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../switch")
import https

with open(f"{HERE}/../refusals/rest.json") as file:
    REFUSALS = json.load(file)


class Handler(https.Handler):
    refusals = REFUSALS["http"]

    def do_GET(self):
        if not self.is_known():
            return self.refuse("unauthorized")
        if https.fault("default-password") is not None:
            return self.refuse("default-password")
        status = https.fault("status")
        if status is not None:
            return self.reply(int(status), b"<html><body>Internal Server Error</body></html>", "text/html")
        if not self.path.startswith("/nvue_v1/") or https.fault("elsewhere") is not None:
            return self.refuse("elsewhere")
        https.log("asked", self.path)
        words = ["env", "PYTHONPATH=/opt/cumulus-stand-in/lib", "/usr/bin/python3", "-m", "rest", self.path.removeprefix("/nvue_v1")]
        ran = subprocess.run([*https.ENTRY, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if ran.returncode or not ran.stdout:
            return self.refuse("away" if b"nvued-away" in ran.stderr else "absent")
        if https.fault("cut") is not None:
            self.close_connection = True
            return self.connection.close()
        self.reply(200, ran.stdout)

    def changes(self):
        https.log("changes", f"{self.command} {self.path}")
        self.refuse("changes")

    do_POST = do_PATCH = do_DELETE = do_PUT = changes


https.serve(Handler)

"""Where a patch takes every row of a table away, it takes the table.

PATCH   rewrites this file; standard input is the configuration that runs
"""
import json
import sys

path = sys.argv[1]
runs, patch = json.load(sys.stdin), json.load(open(path))
rows, gone = {}, {}
for op in patch:
    table, *rest = [step.replace("~1", "/").replace("~0", "~") for step in op["path"].split("/")[1:]]
    rows.setdefault(table, set(runs.get(table, {})))
    if op["op"] == "remove" and len(rest) == 1:
        gone.setdefault(table, set()).add(rest[0])
    else:
        rows[table].add(None)
whole = [table for table in rows if gone.get(table) == rows[table]]
kept = [op for op in patch if op["path"].split("/")[1] not in whole]
with open(path, "w") as file:
    json.dump(kept + [{"op": "remove", "path": "/" + table} for table in whole], file)

"""What an automatic rollback makes run again on SONiC: rows of our ports, and those that are ours by their name, as they were; all others as they are now.

NOW KEPT TABLES PORTS   prints that configuration; nothing where it runs
"""
import json
import sys

now, kept = [json.load(open(path)) for path in sys.argv[1:3]]
tables, ports = sys.argv[3].split(), set(sys.argv[4].split())
desired = {table: dict(rows) for table, rows in now.items()}
for table in tables:
    rows, before = desired.setdefault(table, {}), kept.get(table, {})
    for key in set(rows) | set(before):
        of_ports = ports.intersection(key.split("|")[0].split(","))
        if of_ports or key.startswith("railwright") or (table, key) == ("PFC_WD", "GLOBAL"):
            if key in before:
                rows[key] = before[key]
            else:
                del rows[key]
        elif table == "CABLE_LENGTH" and key in rows:
            lengths = before.get(key, {})
            others = {port: length for port, length in rows[key].items() if port not in ports}
            rows[key] = dict(others, **{port: lengths[port] for port in ports if port in lengths})
    if not rows:
        del desired[table]
if desired != now:
    print(json.dumps(desired, sort_keys=True))

"""Sorts a change of configuration into the steps in which the fake carries it out, one write each.

As in sonic-utilities generic_config_updater/patch_sorter.py (RequiredValueIdentifier): rows of the tables of
`refusals/flaps.json` want their port to be administratively down. On a port that is up the sorter itself takes it down before and
up after. That the ports go one after another, and the order of tables, are this fake's own."""

import home


def differences(old, new):
    """(table, key, fields or None) of every row that differs."""
    for table in sorted(set(old) | set(new)):
        before, after = old.get(table, {}), new.get(table, {})
        for key in sorted(set(before) | set(after)):
            if before.get(key) != after.get(key):
                yield table, key, after.get(key)


def port_of(rules, table, key):
    if table not in rules["tables"]:
        return None
    port = key.split("|")[0]
    return None if port == "global" else port


def sort(old, new):
    """Steps: what is referred to comes first, then the ports, then the rest, and what goes away last."""
    rules = home.data("refusals/flaps.json")
    first, ports, rest, last = [], {}, [], []
    for table, key, fields in differences(old, new):
        port = port_of(rules, table, key)
        if port is not None and port in old.get("PORT", {}) and port in new.get("PORT", {}):
            ports.setdefault(port, []).append((table, key, fields))
        elif table in rules["referred_to"]:
            (first if fields is not None else last).append((table, key, fields))
        else:
            rest.append((table, key, fields))
    steps = list(first)
    for port, rows in ports.items():
        up = old["PORT"][port].get("admin_status", "down") == "up"
        if up:
            steps.append(("PORT", port, {**old["PORT"][port], "admin_status": "down"}))
        steps += rows
        if up and new["PORT"][port].get("admin_status", "down") == "up":
            steps.append(("PORT", port, {**old["PORT"][port], "admin_status": "up"}))
    return steps + rest + last


def words(step, now):
    """A step as the operation that it is."""
    table, key, fields = step
    path = f"/{table}/{key.replace('~', '~0').replace('/', '~1')}"
    if fields is None:
        return {"op": "remove", "path": path}
    return {"op": "add" if now is None else "replace", "path": path, "value": fields}

"""What the daemons of a SONiC switch make of CONFIG_DB, in the fake: rows of the buffer manager, the ports in APPL_DB.

Traditional model, as in sonic-swss cfgmgr/buffermgr.cpp: the manager itself writes BUFFER_PROFILE|pg_lossless_* and
BUFFER_PG|<port>|<pgs> into CONFIG_DB. It never takes a group away that another `pfc_enable` once asked for; on a port that is
administratively down it does so on Mellanox alone. Dynamic model, as in cfgmgr/buffer_headroom_mellanox.lua: results are
in APPL_DB only. The real ones are separate processes that hear of every row; here they are told at the end of every write."""

import math

import home
from database import Config, connect

POOL = "ingress_lossless_pool"
BUFFERS = ["BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE"]
# rows of other tables move nothing here
HEARD = ["PORT", "PORT_QOS_MAP", "CABLE_LENGTH", "DEVICE_METADATA", "LOSSLESS_TRAFFIC_PATTERN", *BUFFERS]


def groups(pfc_enable):
    """"3,4" is one group "3-4", "2,3,4,6" are "2-4" and "6"."""
    numbers = sorted({int(word) for word in pfc_enable.split(",") if word.strip().isdigit()})
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [str(a) if a == b else f"{a}-{b}" for a, b in runs]


def cables(config):
    return next(iter(config.get("CABLE_LENGTH", {}).values()), {})


def is_dynamic(config):
    return config.get("DEVICE_METADATA", {}).get("localhost", {}).get("buffer_model") == "dynamic"


def complain(line):
    """Once: the real one speaks when something changes, this one looks at everything after every write."""
    if line not in home.lines("syslog"):
        home.log("syslog", line)


def lookup(config):
    sku = config.get("DEVICE_METADATA", {}).get("localhost", {}).get("hwsku", "")
    tables = home.data("headroom/rows.json")["tables"]
    return {(row[0], row[1]): row for table in tables if sku in table["hwskus"] for row in table["rows"]}


def asked(config, changes, tables):
    """The ports that changed rows of these tables speak of; all of them at a start, or for rows that are of no port."""
    every = config.get("PORT", {})
    if changes is None or any(table not in ("PORT", "PORT_QOS_MAP", "BUFFER_PG") for table, _ in changes if table in tables):
        return every
    named = {key.split("|")[0] for table, key in changes if table in tables}
    return {port: fields for port, fields in every.items() if port in named}


def traditional(store, config, platform, changes):
    rows = lookup(config)
    for port, fields in asked(config, changes, ["PORT", "PORT_QOS_MAP", "CABLE_LENGTH"]).items():
        cable = cables(config).get(port)
        pfc = config.get("PORT_QOS_MAP", {}).get(port, {}).get("pfc_enable")
        if cable is None or cable == "0m" or pfc is None:
            continue
        profile = f"pg_lossless_{fields['speed']}_{cable}_profile"
        if fields.get("admin_status", "down") == "down" and platform == "mellanox":
            for group in groups(pfc):
                if config.get("BUFFER_PG", {}).get(f"{port}|{group}", {}).get("profile") == profile:
                    store.set("BUFFER_PG", f"{port}|{group}", None)
            continue
        row = rows.get((fields["speed"], cable))
        if row is None:
            complain(f"ERR swss#buffermgrd: Unable to create/update PG profile for port {port}. "
                     f"No PG profile configured for speed {fields['speed']} and cable length {cable}")
            continue
        if profile not in config.get("BUFFER_PROFILE", {}):
            mode = config.get("BUFFER_POOL", {}).get(POOL, {}).get("mode")
            if mode is None:
                continue
            _, _, size, xon, xoff, threshold, offset = row
            made = {"pool": POOL, "xon": xon, "xon_offset": offset, "xoff": xoff, "size": size, f"{mode}_th": threshold}
            store.set("BUFFER_PROFILE", profile, made)
            config.setdefault("BUFFER_PROFILE", {})[profile] = made
        for group in groups(pfc):
            if config.get("BUFFER_PG", {}).get(f"{port}|{group}", {}).get("profile") != profile:
                store.set("BUFFER_PG", f"{port}|{group}", {"profile": profile})


def headroom(speed, cable, mtu, lanes, lossless, chip):
    """Bytes of xoff and xon; every name is one of the Lua."""
    on_cable = 2 * int(cable[:-1]) * speed * 10**9 / 198000000 / 8000
    peer = chip["quanta"].get(str(speed), 60.8) * 64
    propagation = mtu + on_cable + 0.8 * 1024 + peer + speed / 1000 * 120 / 8
    cell, percent, size = chip["cell"], int(lossless["small_packet_percentage"]), int(lossless["mtu"])
    worst = math.ceil(cell / 64) if cell > 128 else math.ceil(2 * cell / (1 + cell))
    small = 100 * 64 / ((percent * 64 + (100 - percent) * size) / 100)
    occupancy = (100 - small + small * worst) / 100
    xoff = math.ceil((size + propagation * occupancy) / 1024) * 1024
    return xoff, chip["pipeline_k"] * 1024 * (2 if lanes == 8 else 1)


def dynamic(config, changes):
    chip = home.data("headroom/dynamic.json")
    appl = connect("APPL_DB")
    lossless = next(iter(config.get("LOSSLESS_TRAFFIC_PATTERN", {}).values()), {"mtu": "1024", "small_packet_percentage": "100"})
    pipe = appl.pipeline(transaction=False)
    groups_of = {}
    for key, row in config.get("BUFFER_PG", {}).items():
        port, group = key.split("|")
        groups_of.setdefault(port, []).append((group, row))
    heard = ["PORT", "CABLE_LENGTH", "LOSSLESS_TRAFFIC_PATTERN", "DEVICE_METADATA", "BUFFER_PG"]
    for port, fields in asked(config, changes, heard).items():
        for key in appl.keys(f"BUFFER_PG_TABLE:{port}:*"):
            pipe.delete(key)
        cable = cables(config).get(port, "0m")
        if fields.get("admin_status", "down") == "down" or cable == "0m":
            continue
        name = f"pg_lossless_{fields['speed']}_{cable}"
        name += "" if fields.get("mtu", "9100") == "9100" else f"_mtu{fields['mtu']}"
        lanes = len(fields["lanes"].split(","))
        name += "_8lane_profile" if lanes == 8 else "_profile"
        mtu = int(fields.get("mtu", "9100"))
        xoff, xon = headroom(int(fields["speed"]), cable, mtu, lanes, lossless, chip)
        size = xon + xoff + (mtu if lanes == 8 else 0)
        for group, row in groups_of.get(port, []):
            if row.get("profile") == "NULL":
                pipe.hset(f"BUFFER_PG_TABLE:{port}:{group}", mapping={"profile": name})
                pipe.hset(f"BUFFER_PROFILE_TABLE:{name}", mapping={"pool": POOL, "xon": xon, "xoff": xoff, "size": size, "dynamic_th": "0"})
    pipe.execute()


def ports(config, changes):
    """APPL_DB has every port with what the ASIC took; a link is up where both are admin up and a test did not pull the cable."""
    appl, state = connect("APPL_DB"), connect("STATE_DB")
    pipe, other = appl.pipeline(transaction=False), state.pipeline(transaction=False)
    for port, fields in asked(config, changes, ["PORT"]).items():
        admin = fields.get("admin_status", "down")
        link = "up" if admin == "up" and home.fault(f"unplugged-{port}") is None else "down"
        row = {**{field: str(value) for field, value in fields.items()}, "admin_status": admin, "oper_status": link}
        pipe.hset(f"PORT_TABLE:{port}", mapping=row)
        other.hset(f"PORT_TABLE|{port}", mapping={"state": "ok", "netdev_oper_status": link, "admin_status": admin})
    pipe.execute()
    other.execute()


def mirror(config):
    """With the traditional model the buffer tables of CONFIG_DB go to APPL_DB as they are."""
    appl = connect("APPL_DB")
    pipe = appl.pipeline(transaction=False)
    for table in BUFFERS:
        for key in appl.keys(f"{table}_TABLE:*"):
            pipe.delete(key)
        for key, fields in config.get(table, {}).items():
            if fields:
                pipe.hset(f"{table}_TABLE:{key.replace('|', ':')}", mapping={k: str(v) for k, v in fields.items()})
    pipe.execute()


def run(changes=None):
    """After a write of these rows, each a table and a key; None where all is new."""
    if changes is not None and not any(table in HEARD for table, _ in changes):
        return
    store = Config()
    config = store.read()
    if not config:
        return
    ports(config, changes)
    if is_dynamic(config):
        dynamic(config, changes)
    else:
        traditional(store, config, home.version().get("asic_type", ""), changes)
        mirror(store.read())


def counters(config):
    """COUNTERS_DB as after a boot, all zero; STATE_DB with what a port can do."""
    db, state = connect("COUNTERS_DB").pipeline(transaction=False), connect("STATE_DB").pipeline(transaction=False)
    can = home.data("headroom/ports.json")
    number = 0x1000000000000
    for port, fields in config.get("PORT", {}).items():
        number += 1
        db.hset("COUNTERS_PORT_NAME_MAP", port, f"oid:{number:#x}")
        db.hset(f"COUNTERS:oid:{number:#x}", mapping={f"SAI_PORT_STAT_PFC_{p}_{way}_PKTS": "0" for p in range(8) for way in ("RX", "TX")})
        sku = config.get("DEVICE_METADATA", {}).get("localhost", {}).get("hwsku", "")
        state.hset(f"PORT_TABLE|{port}", mapping=can["skus"].get(sku, {}))
        for queue in range(8):
            number += 2
            db.hset("COUNTERS_QUEUE_NAME_MAP", f"{port}:{queue}", f"oid:{number:#x}")
            db.hset(f"COUNTERS:oid:{number:#x}", mapping={"SAI_QUEUE_STAT_DROPPED_PACKETS": "0", "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": "0"})
            if port in config.get("PFC_WD", {}):
                db.hset(f"COUNTERS:oid:{number:#x}", mapping={"PFC_WD_STATUS": "operational", "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": "0", "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": "0"})
            db.hset("COUNTERS_PG_NAME_MAP", f"{port}:{queue}", f"oid:{number + 1:#x}")
            db.hset(f"COUNTERS:oid:{number + 1:#x}", mapping={"SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS": "0", "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES": "0"})
    db.execute()
    state.execute()

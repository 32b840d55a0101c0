//! What SONiC counts: COUNTERS_DB, all ports in one question. `sonic-db-cli DB EVAL SCRIPT 0` hands
//! a script to Redis, as SONiC's own tools do (sonic-net/sonic-utilities: scripts/fast-reboot,
//! `backup_database`); one call a counter would take minutes. The script has `hget` alone.

use crate::counters::PRINT_UPTIME;
use crate::counters::names::{Meter, VendorCounter, new_64_bit_counter};
use railwright_base::quote::{quote_for_shell, sh_words};

/// COUNTERS_DB (sonic-net/sonic-utilities: tests/mock_tables/counters_db.json; sonic-net/SONiC:
/// doc/qos/ECN_and_WRED_statistics_HLD.md; sonic-net/sonic-swss: orchagent/pfcactionhandler.cpp),
/// with the queue or the group behind a `/`.
pub const COUNTERS: &[VendorCounter] = &[
    new_64_bit_counter("SAI_PORT_STAT_PFC_{p}_RX_PKTS", Meter::PauseReceived),
    new_64_bit_counter("SAI_PORT_STAT_PFC_{p}_TX_PKTS", Meter::PauseSent),
    new_64_bit_counter("SAI_QUEUE_STAT_DROPPED_PACKETS/{p}", Meter::Lost),
    new_64_bit_counter("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS/{p}", Meter::Marked),
    new_64_bit_counter("PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED/{p}", Meter::Storms),
    new_64_bit_counter(
        "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS/{p}",
        Meter::Lost,
    ),
];

/// Where ports, queues and groups are found by their names, and how a counter's name begins that is
/// kept there.
const MAPS: [(&str, &str); 3] = [
    ("COUNTERS_PORT_NAME_MAP", "SAI_PORT_"),
    ("COUNTERS_QUEUE_NAME_MAP", "SAI_QUEUE_"),
    ("COUNTERS_PG_NAME_MAP", "SAI_INGRESS_PRIORITY_GROUP_"),
];

/// The section. Exit 69 where the host is no SONiC.
pub fn render_sonic_counters_script(ports: &[String]) -> String {
    format!(
        "command -v sonic-db-cli >/dev/null || exit 69\n\
         {PRINT_UPTIME}\n\
         sonic-db-cli COUNTERS_DB EVAL {lua} 0 {ports}\n",
        lua = quote_for_shell(&render_counters_lua()),
        ports = sh_words(ports.iter().map(String::as_str))
    )
}

/// Names of counters of a port have the priority in them; those of queues and groups stand behind a
/// `/`.
fn render_counters_lua() -> String {
    let [port, queue, group] = MAPS;
    format!(
        "local out = {{}}\n\
         local function say(id, name, said) local v = redis.call('hget', 'COUNTERS:' .. id, name); \
         if v then out[#out + 1] = said .. ' ' .. v end end\n\
         for _, port in ipairs(ARGV) do\n\
         out[#out + 1] = 'port ' .. port\n\
         local id = redis.call('hget', '{port_map}', port)\n\
         if not id then out[#out + 1] = 'absent' else\n\
         for n = 0, 7 do\n\
         for _, name in ipairs({{{of_port}}}) do local said = string.format(name, n); say(id, \
         said, said) end\n\
         local q = redis.call('hget', '{queue_map}', port .. ':' .. n)\n\
         if q then for _, name in ipairs({{{of_queues}}}) do say(q, name, name .. '/' .. n) end \
         end\n\
         local g = redis.call('hget', '{group_map}', port .. ':' .. n)\n\
         if g then for _, name in ipairs({{{of_groups}}}) do say(g, name, name .. '/' .. n) end \
         end\n\
         end end end\n\
         return table.concat(out, '\\n')",
        port_map = port.0,
        queue_map = queue.0,
        group_map = group.0,
        of_port = list_counter_names(&[port.1]),
        of_queues = list_counter_names(&["SAI_QUEUE_", "PFC_WD_"]),
        of_groups = list_counter_names(&[group.1]),
    )
}

/// The names that begin in one of these ways, in quotes, with a place for the priority.
fn list_counter_names(starts: &[&str]) -> String {
    let names = COUNTERS.iter().map(|row| row.name.trim_end_matches("/{p}"));
    let mut list = Vec::new();
    for name in names.chain(["PFC_WD_STATUS"]) {
        if starts.iter().any(|start| name.starts_with(start)) {
            list.push(format!("'{}'", name.replace("{p}", "%d")));
        }
    }
    list.join(",")
}

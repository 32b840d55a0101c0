//! Probes rendered to POSIX sh: no Python, no bash; systemd for what must outlive the call.

use super::probe::{CounterPort, Probe, TrafficEnd, TrafficTest};
use core::net::IpAddr;
use railwright_base::quote::{quote_for_shell, sh_words};

/// Turns of a latency run: enough for a 99th percentile, under a second on any NIC.
const LATENCY_TURNS: &str = "1000";

/// A UDP port of RoCE version 2, assigned by IANA.
const ROCE_PORT: u16 = 4791;

const PRELUDE: &str =
    "need() { command -v \"$1\" >/dev/null 2>&1 || { echo \"@missing $1\"; exit 127; }; }\n";

/// The probe's script.
pub fn render_probe_script(probe: &Probe) -> String {
    let body = match probe {
        Probe::Rails { netdevs } => render_rails_probe(netdevs),
        Probe::PathMtu {
            source,
            destination,
            mtu,
        } => path_mtu(*source, *destination, *mtu),
        Probe::ModuleCheck { script } => format!(
            "need timeout\ntimeout -k 2 30 sh -c {}\n",
            quote_for_shell(script)
        ),
        Probe::ServeTraffic {
            token,
            end,
            lease_s,
        } => render_traffic_server_script(token, end, *lease_s),
        Probe::SendTraffic { end, server, .. } => render_traffic_client_script(end, *server),
        Probe::EndTraffic { token } => end_traffic(token),
        Probe::CountMarks {
            token,
            sender,
            netdev,
            lease_s,
        } => count_marks(token, *sender, netdev, *lease_s),
        Probe::ReadMarks { token, netdev } => read_marks(token, netdev),
        Probe::LiveTraffic { device, seconds } => {
            format!(
                "need eadm\nneed timeout\ntimeout {seconds} eadm stat -d {} -l 2>&1\nexit 0\n",
                quote_for_shell(device)
            )
        }
        Probe::Machine { modules } => super::probe_machine::render_machine_probe_script(modules),
        Probe::Counters { ports } => ports.iter().map(render_counters_probe).collect(),
        Probe::JobNeeds { script } => script.clone(),
        Probe::StartJob {
            token,
            files,
            script,
            lease_s,
        } => super::probe_job::render_job_start_script(token, files, script, *lease_s),
        Probe::JobOutput { token, from } => {
            super::probe_job::render_job_output_script(token, *from)
        }
        Probe::EndJob { token } => super::probe_job::render_job_end_script(token),
        // As of everything that is asked at the wrong door.
        Probe::InPod { .. } => "echo 'a host has no pods of a cluster' >&2\nexit 70\n".to_owned(),
    };
    format!("{PRELUDE}{body}")
}

/// `read` and not `cat`: a file that says EINVAL (carrier of a netdev that is down, an empty GID
/// slot) prints nothing.
const RAILS: &str = r#"for p in /sys/class/infiniband/*/ports/*; do
[ -d "$p" ] || continue
d=${p#/sys/class/infiniband/}; d=${d%%/*}
echo "@port $d ${p##*/}"
for k in state phys_state link_layer rate; do v=; read -r v 2>/dev/null <"$p/$k" && echo "$k $v"; done
v=; read -r v 2>/dev/null <"/sys/class/infiniband/$d/parent" && echo "netdev $v"
for f in "/sys/class/infiniband/$d/device/net/"*; do [ -e "$f" ] && echo "function-netdev ${f##*/}"; done
grep -s . "$p"/gids/* /dev/null | grep -v ':0000:0000:0000:0000:0000:0000:0000:0000$' | while IFS=: read -r f g; do
i=${f##*/}; t=; n=
read -r t 2>/dev/null <"$p/gid_attrs/types/$i"
read -r n 2>/dev/null <"$p/gid_attrs/ndevs/$i"
echo "gid $i $g ${n:--} $t"
done
done
echo @rdma
timeout 10 rdma -j link show 2>/dev/null
echo
echo @tools
for t in ib_write_bw ib_read_lat ping nft ethtool systemd-run rdma timeout eadm; do command -v "$t" >/dev/null 2>&1 && echo "$t"; done
exit 0
"#;

fn render_rails_probe(netdevs: &[String]) -> String {
    let words = sh_words(netdevs.iter().map(String::as_str));
    format!(
        "for n in {words}; do\n\
         echo \"@netdev $n\"; d=/sys/class/net/$n\n\
         [ -d \"$d\" ] || {{ echo absent; continue; }}\n\
         for k in operstate carrier mtu speed; do v=; read -r v 2>/dev/null <\"$d/$k\" && echo \
         \"$k $v\"; done\n\
         ip -o addr show dev \"$n\" 2>/dev/null | while read -r _ _ f a _; do echo \"$f $a\"; \
         done\n\
         done\n\
         {RAILS}"
    )
}

/// The payload is what is left of the packet without IP and ICMP headers.
fn path_mtu(source: IpAddr, destination: IpAddr, mtu: u32) -> String {
    let headers = if destination.is_ipv4() { 28 } else { 48 };
    format!(
        "need ping\nping -n -M do -s {} -c 3 -i 0.3 -W 2 -I {source} {destination} 2>&1\n",
        mtu.saturating_sub(headers)
    )
}

fn build_perftest_arguments(end: &TrafficEnd) -> Vec<String> {
    let mut words = vec![
        end.test.program().to_owned(),
        "-d".to_owned(),
        end.device.clone(),
    ];
    words.extend([
        "-i".to_owned(),
        end.device_port.to_string(),
        "-F".to_owned(),
        "-p".to_owned(),
        end.port.to_string(),
    ]);
    if let (Some(index), false) = (end.gid_index, end.rdma_cm) {
        words.extend(["-x".to_owned(), index.to_string()]);
    }
    if end.rdma_cm {
        words.push("-R".to_owned());
    }
    match end.test {
        TrafficTest::WriteBandwidth => words.extend([
            "--report_gbits".to_owned(),
            "-D".to_owned(),
            end.seconds.to_string(),
        ]),
        TrafficTest::ReadLatency => words.extend(["-n".to_owned(), LATENCY_TURNS.to_owned()]),
    }
    if let Some(load) = end.load {
        words.extend([
            "-s".to_owned(),
            load.message_bytes.to_string(),
            "-q".to_owned(),
            load.queue_pairs.to_string(),
        ]);
    }
    if let Some(gpu) = &end.gpu {
        // DMA-BUF is refused before CUDA was asked for, so the order counts
        // (perftest_parameters.c).
        words.push(format!("--use_cuda_bus_id={}", gpu.bus_id));
        words.extend(gpu.dmabuf.then(|| "--use_cuda_dmabuf".to_owned()));
    }
    words
}

/// Sets `$near` to what keeps a program on the CPUs of the NIC's socket, where the kernel names
/// them: memory that crosses sockets costs bandwidth that is no fault of the fabric.
fn render_cpu_affinity_script(end: &TrafficEnd) -> String {
    let list = quote_for_shell(&format!(
        "/sys/class/infiniband/{}/device/local_cpulist",
        end.device
    ));
    format!(
        "near=; c=; {{ read -r c <{list}; }} 2>/dev/null\n\
         case $c in ''|*[!0-9,-]*) ;; *) command -v taskset >/dev/null 2>&1 && near=\"taskset -c \
         $c\" ;; esac\n"
    )
}

/// The server listens on TCP, or through rdma_cm, which /proc/net/tcp does not show; where `rdma`
/// cannot show it either, two seconds of life are taken for listening. A server that refuses an
/// option says so above its help of 90 lines.
fn render_traffic_server_script(token: &str, end: &TrafficEnd, lease_s: u32) -> String {
    let unit = quote_for_shell(&format!("railwright-{token}"));
    let command = build_perftest_arguments(end);
    let listening = if end.rdma_cm {
        format!(
            "rdma -j res show cm_id 2>/dev/null | tr '{{' '\\n' | grep LISTEN | grep -q ':{}\"' || \
             [ $i -ge 20 ]",
            end.port
        )
    } else {
        format!(
            "grep -qi ':{:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6 2>/dev/null",
            end.port
        )
    };
    format!(
        "need {program}\n\
         need systemd-run\n\
         {near}systemd-run --quiet --collect --unit={unit} -p RuntimeMaxSec={lease_s} -p \
         LimitMEMLOCK=infinity $near {command} || exit 1\n\
         i=0; while [ $i -lt 100 ]; do\n\
         systemctl is-active --quiet {unit} || break\n\
         if {listening}; then echo @listening; exit 0; fi\n\
         sleep 0.1; i=$((i+1)); done\n\
         journalctl -q --no-pager -o cat -n 200 -u {unit} 2>&1\n\
         systemctl stop {unit} 2>/dev/null\n\
         exit 3\n",
        program = end.test.program(),
        near = render_cpu_affinity_script(end),
        command = sh_words(command.iter().map(String::as_str)),
    )
}

/// Standard error stays apart, so that no warning ever lands in the middle of the table. A firewall
/// that swallows the connection would leave the client waiting until its lease ends it, without a
/// word: after ten seconds in SYN_SENT the reason is reported.
fn render_traffic_client_script(end: &TrafficEnd, server: IpAddr) -> String {
    let mut command = build_perftest_arguments(end);
    command.push(server.to_string());
    format!(
        "need {program}\n\
         {near}$near {command} &\n\
         client=$!\n\
         ( sleep 10 >/dev/null 2>&1; grep -qi ':{port:04X} 02 ' /proc/net/tcp /proc/net/tcp6 \
         2>/dev/null && echo @unreachable && kill $client ) &\n\
         watch=$!\n\
         wait $client\n\
         code=$?\n\
         kill $watch 2>/dev/null\n\
         exit $code\n",
        program = end.test.program(),
        near = render_cpu_affinity_script(end),
        command = sh_words(command.iter().map(String::as_str)),
        port = end.port,
    )
}

fn end_traffic(token: &str) -> String {
    let unit = quote_for_shell(&format!("railwright-{token}"));
    format!(
        "systemctl stop {unit} 2>/dev/null\n\
         journalctl -q --no-pager -o cat -n 60 -u {unit} 2>&1\n\
         exit 0\n"
    )
}

/// The lease starts before the table does, so that at no moment a table stands that nothing
/// removes.
fn count_marks(token: &str, sender: IpAddr, netdev: &str, lease_s: u32) -> String {
    let (table, unit) = (
        format!("railwright_{token}"),
        quote_for_shell(&format!("railwright-{token}-marks")),
    );
    let family = if sender.is_ipv4() { "ip" } else { "ip6" };
    let rules = format!(
        "table inet {table} {{\n\
         set marks {{ type dscp; flags dynamic; size 64; }}\n\
         chain arrive {{ type filter hook prerouting priority -300; policy accept;\n\
         {family} saddr {sender} udp dport {ROCE_PORT} add @marks {{ {family} dscp counter }}\n\
         }}\n\
         }}\n"
    );
    format!(
        "{nic}command -v nft >/dev/null 2>&1 || {{ echo '@missing nft'; exit 0; }}\n\
         need systemd-run\n\
         systemd-run --quiet --collect --unit={unit} -p RuntimeMaxSec={lease_s} -p \
         \"ExecStopPost=-$(command -v nft) delete table inet {table}\" sleep infinity || exit 1\n\
         printf %s {rules} | nft -f - 2>&1 || {{ systemctl stop {unit}; echo '@missing nft'; exit \
         0; }}\n\
         echo @counting\n",
        nic = nic_priorities(netdev),
        rules = quote_for_shell(&rules),
    )
}

fn read_marks(token: &str, netdev: &str) -> String {
    format!(
        "{nic}echo @marks\n\
         nft -j -n list set inet railwright_{token} marks 2>/dev/null\n\
         echo\n\
         systemctl stop {unit} 2>/dev/null\n\
         exit 0\n",
        nic = nic_priorities(netdev),
        unit = quote_for_shell(&format!("railwright-{token}-marks")),
    )
}

fn nic_priorities(netdev: &str) -> String {
    format!(
        "echo @priorities\nethtool -S {} 2>/dev/null | grep -E '^ *rx_prio[0-7]_packets:'\n",
        quote_for_shell(netdev)
    )
}

/// `ethtool -S` has thousands of lines on a ConnectX: filtered on the host.
fn render_counters_probe(port: &CounterPort) -> String {
    let folder = quote_for_shell(&format!(
        "/sys/class/infiniband/{}/ports/{}",
        port.device, port.device_port
    ));
    format!(
        "echo {head}\n\
         for f in {folder}/hw_counters/* {folder}/counters/*; do v=; read -r v 2>/dev/null <\"$f\" \
         && echo \"${{f##*/}} $v\"; done\n\
         ethtool -S {netdev} 2>/dev/null | grep -E \
         'discard|out_of_range|oversize|crc_err|symbol_err|link_down|pause_storm|out_of_buffer|prio[0-7]_pause:' \
         | tr -d : \n",
        head = quote_for_shell(&format!("@counters {} {}", port.device, port.device_port)),
        netdev = quote_for_shell(&port.netdev),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{GpuBuffer, TrafficLoad};

    fn end(rdma_cm: bool) -> TrafficEnd {
        TrafficEnd {
            test: TrafficTest::WriteBandwidth,
            device: "mlx5_0; reboot".to_owned(),
            device_port: 1,
            gid_index: Some(3),
            port: 18601,
            seconds: 2,
            rdma_cm,
            load: None,
            gpu: None,
        }
    }

    #[test]
    fn both_ends_of_a_run_get_the_same_words_and_every_value_is_quoted() {
        let server = render_probe_script(&Probe::ServeTraffic {
            token: "t1".into(),
            end: end(false),
            lease_s: 40,
        });
        let client = render_probe_script(&Probe::SendTraffic {
            end: end(false),
            server: "192.0.2.1".parse().unwrap(),
            lease_s: 40,
        });
        let words = "'ib_write_bw' '-d' 'mlx5_0; reboot' '-i' '1' '-F' '-p' '18601' '-x' '3' \
                     '--report_gbits' '-D' '2'";
        assert!(
            server.contains(words) && client.contains(&format!("{words} '192.0.2.1'")),
            "{server}\n{client}"
        );
        assert!(server.contains("RuntimeMaxSec=40") && server.contains(":48A9 0*:0000 0A"));
    }

    #[test]
    fn rdma_cm_picks_its_gid_by_the_address() {
        let client = render_probe_script(&Probe::SendTraffic {
            end: end(true),
            server: "192.0.2.1".parse().unwrap(),
            lease_s: 40,
        });
        assert!(client.contains("'-R'") && !client.contains("'-x'"));
    }

    #[test]
    fn gpu_memory_is_named_by_its_pci_address_and_cuda_comes_before_dma_buf() {
        let gpu = |dmabuf| {
            Some(GpuBuffer {
                bus_id: "0000:18:00.0".into(),
                dmabuf,
            })
        };
        let load = Some(TrafficLoad {
            message_bytes: 8_388_608,
            queue_pairs: 1,
        });
        let client = |dmabuf| {
            let end = TrafficEnd {
                gpu: gpu(dmabuf),
                load,
                ..end(false)
            };
            render_probe_script(&Probe::SendTraffic {
                end,
                server: "192.0.2.1".parse().unwrap(),
                lease_s: 40,
            })
        };
        assert!(client(true).contains(
            "'-s' '8388608' '-q' '1' '--use_cuda_bus_id=0000:18:00.0' '--use_cuda_dmabuf' \
             '192.0.2.1'"
        ));
        assert!(!client(false).contains("dmabuf"));
    }

    #[test]
    fn a_packet_of_9000_bytes_has_8972_of_payload() {
        let ping = |d: &str| {
            render_probe_script(&Probe::PathMtu {
                source: d.parse().unwrap(),
                destination: d.parse().unwrap(),
                mtu: 9000,
            })
        };
        assert!(ping("192.0.2.1").contains("-s 8972 "));
        assert!(ping("2001:db8::1").contains("-s 8952 "));
    }

    #[test]
    fn every_script_is_sound_shell() {
        let token = || "t1".to_owned();
        let netdevs = vec!["eth1".to_owned(), "a'b".to_owned()];
        let port = CounterPort {
            device: "rxe0".into(),
            device_port: 1,
            netdev: "eth1".into(),
        };
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        for probe in [
            Probe::Rails { netdevs },
            Probe::ModuleCheck {
                script: "a 'b' \"c\"".into(),
            },
            Probe::ServeTraffic {
                token: token(),
                end: end(true),
                lease_s: 9,
            },
            Probe::SendTraffic {
                end: end(false),
                server: address,
                lease_s: 9,
            },
            Probe::EndTraffic { token: token() },
            Probe::CountMarks {
                token: token(),
                sender: address,
                netdev: "eth1".into(),
                lease_s: 9,
            },
            Probe::ReadMarks {
                token: token(),
                netdev: "eth1".into(),
            },
            Probe::Machine {
                modules: vec!["a'b".to_owned(), "mlx5_core".to_owned()],
            },
            Probe::LiveTraffic {
                device: "erdma_0; reboot".to_owned(),
                seconds: 3,
            },
            Probe::Counters { ports: vec![port] },
        ] {
            let out = std::process::Command::new("sh")
                .args(["-n", "-c", &probe.script()])
                .output()
                .unwrap();
            assert!(
                out.status.success(),
                "{}: {}",
                probe.script(),
                String::from_utf8_lossy(&out.stderr)
            );
        }
    }
}

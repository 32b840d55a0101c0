//! The fabric of more than two machines: a learning Ethernet switch on unix datagram sockets, one
//! frame a datagram.

use super::Result;
use super::folder::{LabFolder, machine_name, new_folder_error};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_system::files;
use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The largest frame: QEMU's own limit is below this.
const LARGEST_FRAME: usize = 70_000;

type Address = [u8; 6];

/// Which machine was last seen behind an address.
#[derive(Debug, Default)]
struct MacAddressTable(BTreeMap<Address, u8>);

impl MacAddressTable {
    /// Learns the sender and says to which of `ports` the frame goes.
    fn forward(&mut self, frame: &[u8], from: u8, ports: u8) -> Vec<u8> {
        let (Some(to), Some(sender)) = (read_mac_address(frame, 0), read_mac_address(frame, 6))
        else {
            return Vec::new();
        };
        // Frames from group addresses are malformed: learning one would redirect broadcasts.
        if sender[0] & 1 == 0 {
            self.0.insert(sender, from);
        }
        match self.0.get(&to) {
            Some(port) if to[0] & 1 == 0 => {
                if *port == from {
                    Vec::new()
                } else {
                    vec![*port]
                }
            }
            _ => (1..=ports).filter(|port| *port != from).collect(),
        }
    }
}

fn read_mac_address(frame: &[u8], at: usize) -> Option<Address> {
    frame.get(at..at + 6)?.try_into().ok()
}

/// Runs the switch of a lab until its process is ended: a thread a port.
pub fn run_switch(folder: &LabFolder, ports: u8) -> Result<()> {
    let machines = folder.path("machines");
    let sockets = (1..=ports)
        .map(|port| bind_port_socket(&machines, port))
        .collect::<Result<Vec<_>>>()?;
    let table = Arc::new(Mutex::new(MacAddressTable::default()));
    std::thread::scope(|scope| {
        for (socket, port) in sockets.iter().zip(1..) {
            let table = Arc::clone(&table);
            scope.spawn(move || serve_port(socket, port, ports, &table));
        }
    });
    Ok(())
}

/// The process runs in the folder of the machines: relative paths, for a socket's path may have
/// only 107 bytes.
fn bind_port_socket(machines: &Path, port: u8) -> Result<UnixDatagram> {
    let path = PathBuf::from(format!("port{port}"));
    files::remove_path(&path).map_err(|error| new_folder_error(machines, &error))?;
    UnixDatagram::bind(&path).map_err(|error| new_folder_error(machines, &error))
}

fn serve_port(socket: &UnixDatagram, port: u8, ports: u8, table: &Mutex<MacAddressTable>) {
    let mut frame = vec![0; LARGEST_FRAME];
    while let Ok(length) = socket.recv(&mut frame) {
        let targets = lock_ignoring_poison(table).forward(&frame[..length], port, ports);
        for target in targets {
            // A machine that is not up loses the frame, as behind a real switch.
            let _ = socket.send_to(&frame[..length], format!("{}/wire", machine_name(target)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> Vec<u8> {
        [[2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from]].concat()
    }

    #[test]
    fn it_floods_until_it_has_learnt() {
        let mut table = MacAddressTable::default();
        assert_eq!(table.forward(&frame(2, 1), 1, 4), [2, 3, 4]);
        assert_eq!(table.forward(&frame(1, 2), 2, 4), [1]);
        assert_eq!(table.forward(&frame(2, 1), 1, 4), [2]);
        assert_eq!(
            table.forward(&frame(2, 3), 2, 4),
            Vec::<u8>::new(),
            "it is behind the port that it came from"
        );
    }

    #[test]
    fn broadcasts_go_everywhere_and_garbage_nowhere() {
        let mut table = MacAddressTable::default();
        let broadcast = [[0xff; 6], [2, 0, 0, 0, 0, 1]].concat();
        assert_eq!(table.forward(&broadcast, 3, 3), [1, 2]);
        let from_a_group = [[0xff; 6], [0xff; 6]].concat();
        assert_eq!(table.forward(&from_a_group, 1, 2), [2]);
        assert_eq!(
            table.forward(&broadcast, 2, 2),
            [1],
            "a group address is never learnt"
        );
        assert_eq!(table.forward(&[1, 2, 3], 1, 3), Vec::<u8>::new());
    }
}

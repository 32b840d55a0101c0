//! SONiC switches: a real OpenSSH server and a real Redis behind the commands of SONiC that railwright uses, which are stand-ins
//! (`tests/stand-ins/sonic`). Here the stand-in itself is tried: that it refuses, flaps, derives and forgets as it says.

// A story that cannot go on stops where it is; that is what `unwrap` says here.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod bad_days;
mod delivered;
mod derived;
mod refusals;
mod rig;
#[path = "../kinds/rig.rs"]
#[allow(dead_code, reason = "the stories of the kinds use the rest of it")]
mod root;
mod saved;
#[path = "../transport/server.rs"]
#[allow(dead_code, reason = "the stories of the transport use the rest of it")]
mod server;
#[path = "../journeys/support.rs"]
#[allow(dead_code, reason = "the journeys use the rest of it")]
mod support;

//! What the modules for operators rest on, with the operators themselves: real programs of pinned releases (rig `operators`), beside
//! a real control plane. Only kubelets are played, by kwok, so a container's image is never run: an operator runs here as a process
//! of this machine, in the place of the pod that its own manifest asks for.
//!
//! They take minutes to build and are run by `make test-deep`. Without them the tests say that they are skipped, and fail when
//! RAILWRIGHT_REQUIRE_RIGS=1.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test says what it skips, and ends where something is not as it must be

mod apart;
mod device_plugin;
mod software;

use apart::apart;

/// Their names are folders of `modules/`.
#[test]
fn the_device_plugin_takes_our_pools() {
    apart("device-plugin", |software| {
        device_plugin::every_case_is_taken(software);
        device_plugin::what_is_broken_is_refused(software);
        device_plugin::names_are_refused_before_it_would_refuse_them(software);
    });
}

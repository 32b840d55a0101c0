//! Probes under a lease: whatever a probe starts is ended by the host itself when the lease is
//! over, even if we, the connection or the shell die first.

use railwright_base::quote::quote_for_shell;
use railwright_resource::probe::Probe;
use railwright_resource::program::ENVIRONMENT;

/// The script that runs a probe. Under systemd a transient unit holds all its processes and has the
/// deadline; elsewhere `timeout` has it. The exit status is the probe's; 124 when the lease ended
/// it.
pub fn render_probe_script(probe: &Probe, nonce: &str) -> String {
    let inner = format!(
        "{ENVIRONMENT}HOME=${{HOME:-/root}}; export HOME; cd /\n{{\n{}\n}} </dev/null\n",
        probe.script()
    );
    let lease = probe.limit_s().max(1);
    format!(
        "T=; timeout --version >/dev/null 2>&1 && T=\"timeout -k 3 {lease}\"\n\
         if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then\n\
         printf %s {inner} | systemd-run --quiet --wait --pipe --collect \
         --unit=railwright-probe-{nonce} --description={about} -p RuntimeMaxSec={backstop} -p \
         TimeoutStopSec=3 -p KillMode=control-group $T /bin/sh -s\n\
         else printf %s {inner} | ${{T:-timeout {lease}}} /bin/sh -s\n\
         fi\n",
        inner = quote_for_shell(&inner),
        about = quote_for_shell(&format!("railwright probe {}", probe.name())),
        backstop = lease.saturating_add(5),
    )
}

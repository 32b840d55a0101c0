//! The inventories that come with railwright: sound, and with the editor's line.

use crate::{catalog, modules, say};
use railwright::module;
use railwright::spec::{self, SourceFile};
use std::fs;
use std::path::Path;

fn inventories() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories")
}

#[test]
fn every_inventory_gives_wishes_for_all_its_hosts() {
    let modules = modules();
    for folder in crate::folders(&inventories()) {
        let text = fs::read_to_string(folder.join("cluster.yaml")).unwrap();
        assert!(text.starts_with("# yaml-language-server: $schema=../../docs/schema/spec.schema.json\n"), "{}", folder.display());
        let loaded = spec::load(vec![SourceFile { name: "cluster.yaml".into(), text }]);
        let loaded = loaded.unwrap_or_else(|problems| panic!("{}", say::all(&problems.diagnostics, &[&problems.sources])));
        // The lab's key is made when it comes up; any will do here.
        let key = include_str!("../../modules/package-repositories/tests/no-os/key.asc");
        let texts = module::context::files(&loaded).into_iter().map(|(path, _)| (path, key.to_owned())).collect();
        let desired = module::desired(&loaded, &catalog(), &modules, &texts);
        let desired = desired.unwrap_or_else(|errors| panic!("{}", say::all(&errors, &[&loaded.sources, &modules.sources])));
        for host in &loaded.hosts {
            assert!(desired.wishes.iter().any(|wish| *wish.address.target.name == *host.name), "{}", host.name);
        }
    }
}

//! Commands that people are told to type name the inventory as one word, whatever its folder is
//! called.

use crate::machine::Machine;

const INV: &str = "z;id";

const NOTE: &str = "  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n";

/// What the program says of this inventory; a command in it that is to be pasted has this in it.
fn told(machine: &Machine, words: &[&str], command: &str) {
    let said = machine.run(words);
    let (_, said) = said.split_once('\n').unwrap();
    let lines = || said.lines().filter(|line| line.contains("railwright "));
    let is_one_word = |line: &str| {
        line.split('\'')
            .step_by(2)
            .all(|between_quotes| !between_quotes.contains("z;id"))
    };
    assert!(lines().all(is_one_word), "{words:?}: {said}");
    assert!(
        lines().any(|line| line.contains(command)),
        "{words:?}: {said}"
    );
}

#[test]
fn no_folder_ends_a_command_and_begins_another() {
    let Some(machine) = Machine::start("commands to paste", NOTE, &[]) else {
        return;
    };
    let folder = |name: &str| machine.place.path().join(name);
    std::fs::rename(folder("inv"), folder(INV)).unwrap();
    told(
        &machine,
        &["rollout", "status", INV],
        "railwright apply 'z;id' begins one",
    );
    told(&machine, &["resume", INV], "railwright plan 'z;id'");
    told(&machine, &["plan", INV], "railwright apply 'z;id'");
    told(
        &machine,
        &["plan", INV, "-o", "z;id.json"],
        "railwright apply 'z;id.json'",
    );
    told(&machine, &["apply", INV, "--yes"], "'z;id'");
    told(
        &machine,
        &["state", "forget", INV, "host/n1/file//etc/gone"],
        "railwright state list 'z;id'",
    );
    told(
        &machine,
        &["explain", "host/n1/file//etc/gone", INV],
        "railwright explain host/n1 'z;id'",
    );
    let spec = std::fs::read_to_string(folder("z;id/cluster.yaml")).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    machine.place.write(
        "z;id/cluster.yaml",
        spec.replace(&machine.server.port.to_string(), &free.to_string()),
    );
    told(
        &machine,
        &["facts", INV, "-o", "facts"],
        "railwright facts 'z;id' -o facts",
    );
    told(&machine, &["plan", INV], "railwright plan 'z;id'");
}

//! Law 9, where bytes come in: every door is tried with random bytes, with sound documents that
//! were bent, and with the cases that are kept in `tests/hostile/corpus/DOOR/`. Nothing panics,
//! what comes of it is bounded, an error has a code with a page, and nothing of the input reaches
//! the terminal as a control character.

mod bends;
pub mod bodies;
mod doors;
mod repository;

use bends::Bend;
use doors::{DOORS, Door};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestError, TestRunner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// What one input may make, in bytes of screens: work is bounded by what it leaves, never by a
/// clock.
const SCREENS_MOST: usize = 8 << 20;

fn corpus(door: &Door) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new("tests/hostile/corpus").join(door.name);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

/// What is wrong with what came of these bytes.
fn tried(door: &Door, bytes: &[u8]) -> Result<(), String> {
    let screens = catch_unwind(AssertUnwindSafe(|| (door.open)(bytes)))
        .map_err(|_| "it panics".to_owned())??;
    compared(&screens)
}

fn compared(screens: &[String]) -> Result<(), String> {
    let length: usize = screens.iter().map(String::len).sum();
    if length > SCREENS_MOST {
        return Err(format!("{length} bytes of screens"));
    }
    match screens
        .iter()
        .flat_map(|screen| screen.chars())
        .find(|c| is_control(*c))
    {
        Some(c) => Err(format!(
            "{c:?} reaches the terminal: {:?}",
            screens.iter().find(|screen| screen.contains(c)).unwrap()
        )),
        None => Ok(()),
    }
}

/// Escapes, other control characters, and those that turn the direction of what follows.
fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The words with which a case is kept: a short one is made from its bytes, a long one lies in a
/// file.
fn to_keep(door: &Door, bytes: &[u8], why: &str) -> String {
    let name = railwright_base::Digest::of_bytes(bytes).short().to_owned();
    let place = format!("tests/hostile/corpus/{}/{name}", door.name);
    if bytes.len() <= 400 {
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        return format!("{}: {why}\nkeep it: printf '{octal}' >{place}\n", door.name);
    }
    let file = std::env::temp_dir().join(format!("railwright-hostile-{name}"));
    std::fs::write(&file, bytes).unwrap();
    format!(
        "{}: {why}\nkeep it: cp {} {place}\n",
        door.name,
        file.display()
    )
}

fn check<S: Strategy>(door: &Door, cases: S, bytes: impl Fn(&S::Value) -> Vec<u8>) {
    let ran = TestRunner::new(crate::laws::config()).run(&cases, |case| {
        tried(door, &bytes(&case)).map_err(TestCaseError::fail)
    });
    match ran {
        Ok(()) => println!("law_9 {}: {} cases", door.name, crate::laws::config().cases),
        Err(TestError::Fail(why, case)) => {
            panic!("{}", to_keep(door, &bytes(&case), why.message()))
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn law_9_what_is_kept_holds_at_every_door() {
    let mut wrong = Vec::new();
    for door in DOORS {
        let kept = corpus(door);
        assert!(kept.len() > 3, "{} has next to no corpus", door.name);
        for (path, bytes) in kept {
            wrong.extend(
                tried(door, &bytes)
                    .err()
                    .map(|why| format!("{}: {why}", path.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn law_9_random_bytes_hold_at_every_door() {
    for door in DOORS {
        let bytes = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            proptest::collection::vec(prop::sample::select(bends::COMMON), 0..200),
        ];
        check(door, bytes, Vec::clone);
    }
}

#[test]
fn law_9_bent_documents_hold_at_every_door() {
    for door in DOORS {
        let seeds = (door.seeds)();
        assert!(
            seeds.iter().all(|seed| tried(door, seed).is_ok()) && !seeds.is_empty(),
            "{}: its own documents",
            door.name
        );
        let cases = (
            any::<prop::sample::Index>(),
            proptest::collection::vec(Bend::any(), 1..6),
        );
        check(door, cases, |(seed, bends)| {
            bends::bent(&seeds[seed.index(seeds.len())], bends)
        });
    }
}

/// Documents whose texts are hostile and whose seals hold: what an attacker writes who knows the
/// format.
#[test]
fn law_9_sealed_documents_with_hostile_texts_hold_at_every_door() {
    for door in DOORS {
        let Some(sealed) = door.sealed else { continue };
        let seeds = (door.seeds)();
        let cases = (
            any::<prop::sample::Index>(),
            any::<prop::sample::Index>(),
            0..bends::BAITS.len(),
        );
        check(door, cases, |(seed, place, bait)| {
            sealed(&seeds[seed.index(seeds.len())], *place, bends::BAITS[*bait])
        });
    }
}

#[test]
fn law_9_plans_with_an_empty_list_hold() {
    let door = DOORS.iter().find(|door| door.name == "plan").unwrap();
    let plans = doors::plans_with_an_empty_list();
    assert!(plans.len() > 10, "{} lists", plans.len());
    let wrong: Vec<String> = plans
        .iter()
        .filter_map(|plan| Some(to_keep(door, plan, &tried(door, plan).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_evaluation_finds_what_it_looks_for() {
    assert!(compared(&["plain\n\ttext ä".to_owned()]).is_ok());
    for (screen, why) in [
        ("\u{1b}[2J", "u{1b}"),
        ("\r", "\\r"),
        ("a\u{202e}b", "202e"),
        ("\u{9b}31m", "u{9b}"),
        ("\0", "\\0"),
    ] {
        assert!(
            compared(&[screen.to_owned()]).unwrap_err().contains(why),
            "{screen:?}"
        );
    }
    assert!(compared(&["x".repeat(SCREENS_MOST + 1)]).is_err());
    let panics = Door {
        name: "panics",
        seeds: || vec![],
        open: |_| panic!("a broken door"),
        sealed: None,
    };
    assert_eq!(tried(&panics, b"").unwrap_err(), "it panics");
    assert_eq!(
        to_keep(&DOORS[0], b"a\n", "why"),
        "spec: why\nkeep it: printf '\\141\\012' >tests/hostile/corpus/spec/87428fc52280\n"
    );
}

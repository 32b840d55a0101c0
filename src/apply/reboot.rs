//! Reboots a host and proves it: the boot id is another one, and what waited for the reboot is in effect.

use super::change::Finish;
use super::context::Event;
use super::precondition::{Seen, reads, see};
use super::preflight::{Unready, host_now};
use super::shared::Shared;
use super::trouble;
use crate::base::Digest;
use crate::plan::Member;
use crate::resource::{Action, Answers, Read};
use crate::state::journal_writer::JournalError;
use crate::state::{Entry, Outcome};
use crate::system::clock;
use crate::transport::{Performed, TransportError, Writer};
use std::collections::BTreeSet;

/// Carries out the reboot with this number.
pub(super) async fn reboot(shared: &Shared, n: usize) -> Result<Finish, JournalError> {
    let node = &shared.plan.nodes[n];
    let host = node.target.as_ref().map(|target| target.name.as_str()).unwrap_or_default();
    let finish = rebooted(shared, n, host).await?;
    let _ = shared.finish(node, &finish, None).await;
    Ok(finish)
}

async fn rebooted(shared: &Shared, n: usize, host: &str) -> Result<Finish, JournalError> {
    let (writer, now) = match boot_id(shared, host).await {
        Ok(found) => found,
        Err(unready) => {
            let outcome = Outcome::Unreachable { reason: unready.reason() };
            return Ok(Finish::told(outcome, unready.told(host, &shared.next)));
        }
    };
    if let Err(lost) = shared.heart.confirm(host, &writer).await {
        return Ok(Finish::told(Outcome::Stale { reason: lost.message.clone() }, *lost));
    }
    let earlier = shared.earlier.nodes.get(&shared.plan.nodes[n].id).and_then(|status| status.intent.as_ref());
    let before = match earlier {
        // An earlier part of the run asked for the reboot, and it has happened since.
        Some(intent) if intent.boot_id.as_ref().is_some_and(|boot| *boot != now) => intent.boot_id.clone().unwrap_or_default(),
        _ => {
            if !is_needed(shared, n, &writer).await {
                return Ok(Finish::of(Outcome::Done { changed: false }));
            }
            let attempt = earlier.map_or(1, |intent| intent.attempt + 1);
            if let Err(finish) = ask(shared, n, host, &writer, &now, attempt).await? {
                return Ok(*finish);
            }
            now
        }
    };
    drop(writer);
    (shared.sink)(Event::Rebooting { host: host.to_owned() });
    let limit = shared.context.patience.reboot;
    let mut answered = false;
    match clock::within(limit, come_back(shared, host, &before, &mut answered)).await {
        Some(after) => {
            shared.booted(host, after.clone());
            shared.journal.note(Entry::Rebooted { host: host.to_owned(), from: before, to: after });
            (shared.sink)(Event::Rebooted { host: host.to_owned() });
            Ok(prove(shared, n, host).await)
        }
        None => Ok(missing(shared, host, answered)),
    }
}

/// Whether something that came before it on the host still waits for it: somebody may have rebooted the host meanwhile,
/// and a plan file may hold a reboot that no step needs. A host that gives no answer may be on its way down already.
async fn is_needed(shared: &Shared, n: usize, writer: &Writer) -> bool {
    let (members, wanted) = before(shared, n);
    match writer.reader().read(&wanted).await {
        Ok(answers) => open(shared, &members, &answers).next().is_some(),
        Err(_) => true,
    }
}

/// Those that are not as they are to be. What was taken back is remembered by the plan alone; where it does not say what
/// was there before, its own step has proven it.
fn open<'a>(shared: &'a Shared, members: &'a [&'a Member], answers: &'a Answers) -> impl Iterator<Item = Seen<'a>> {
    let prior = |member: &Member| shared.prior(&member.wish.address);
    let told = move |member: &&&Member| !member.removal || !member.before.is_null() || prior(member).is_some();
    let seen = move |member: &&'a Member| see(member, prior(member), answers, true);
    members.iter().filter(told).map(seen).filter(|seen| !seen.assessment.is_met())
}

/// The resources that come before the reboot on its host, and what has to be read to judge them.
fn before(shared: &Shared, n: usize) -> (Vec<&Member>, Vec<Read>) {
    let members: Vec<&Member> = shared.earlier_on_target(n).into_iter().flat_map(|m| shared.plan.nodes[m].members()).collect();
    let wanted: BTreeSet<Read> = members.iter().flat_map(|member| reads(member)).collect();
    (members, wanted.into_iter().collect())
}

fn missing(shared: &Shared, host: &str, answered: bool) -> Finish {
    let minutes = shared.context.patience.reboot.as_secs() / 60;
    if answered {
        let problem = trouble::not_rebooted(host, minutes, &shared.next);
        Finish::told(Outcome::Failed { reason: "the host did not reboot".to_owned() }, problem)
    } else {
        let problem = trouble::not_back(host, minutes, &shared.next);
        Finish::told(Outcome::Unknown { reason: "the host did not come back from its reboot".to_owned() }, problem)
    }
}

/// Journals the intent and asks for the reboot. A lost connection is what a reboot looks like, so only a plain refusal
/// of the host ends the step here.
async fn ask(
    shared: &Shared,
    n: usize,
    host: &str,
    writer: &Writer,
    boot: &str,
    attempt: u32,
) -> Result<Result<(), Box<Finish>>, JournalError> {
    let node = &shared.plan.nodes[n];
    let token = format!("{}-{n}-{attempt}", shared.run);
    let entry = Entry::NodeStarted {
        node: node.id.clone(),
        attempt,
        token: token.clone(),
        actions: Digest::of(&[Action::Reboot]),
        members: Vec::new(),
        boot_id: Some(boot.to_owned()),
    };
    shared.journal.commit(entry).await?;
    shared.note_acted(n);
    (shared.sink)(Event::ActionStarted { node: node.id.clone(), index: 0, count: 1, word: Action::Reboot.word() });
    match writer.perform(&Action::Reboot, &token).await {
        Ok(Performed::Ended { code, stdout, stderr }) if code != 0 => {
            let problem = trouble::action_failed(&node.id, "reboot", code, &stdout, &stderr, &shared.next);
            let outcome = Outcome::Failed { reason: format!("{host} refused to reboot (exit status {code})") };
            Ok(Err(Box::new(Finish::told(outcome, problem))))
        }
        _ => Ok(Ok(())),
    }
}

/// Looks over new connections until the boot id is another one.
async fn come_back(shared: &Shared, host: &str, before: &str, answered: &mut bool) -> String {
    loop {
        match boot_id(shared, host).await {
            Ok((_, now)) if now != before => return now,
            Ok(_) => *answered = true,
            Err(_) => *answered = false,
        }
        clock::pause(shared.context.patience.reboot_poll).await;
    }
}

async fn boot_id(shared: &Shared, host: &str) -> Result<(Writer, String), Unready> {
    let look = async {
        let writer = shared.connect(host).await?;
        let answers = writer.reader().read(&[Read::Host]).await?;
        Ok::<_, TransportError>((writer, answers))
    };
    let (writer, answers) = look.await?;
    let now = host_now(&answers).map_err(Unready::Unfit)?;
    let boot = now.boot_id.ok_or_else(|| Unready::Unfit("it does not say which boot it is in".to_owned()))?;
    Ok((writer, boot))
}

/// All that was done on the host before the reboot must be as wished now, in every plane.
async fn prove(shared: &Shared, n: usize, host: &str) -> Finish {
    let (members, wanted) = before(shared, n);
    let patience = &shared.context.patience;
    let mut last = String::new();
    for turn in 0..patience.looks() {
        if turn > 0 {
            clock::pause(patience.settle_poll).await;
        }
        match differs(shared, host, &members, &wanted).await {
            Ok(None) => return Finish::of(Outcome::Done { changed: true }),
            Ok(Some(what)) | Err(what) => last = what,
        }
    }
    let problem = trouble::wrong_after_reboot(host, &last, &shared.next);
    Finish::told(Outcome::Failed { reason: format!("not as wished after the reboot: {last}") }, problem)
}

async fn differs(shared: &Shared, host: &str, members: &[&Member], wanted: &[Read]) -> Result<Option<String>, String> {
    let look = async { shared.connect(host).await?.reader().read(wanted).await };
    let answers = look.await.map_err(|error: TransportError| error.to_string())?;
    let what: Vec<String> = open(shared, members, &answers).map(|seen| seen.what_differs()).collect();
    Ok((!what.is_empty()).then(|| what.join("; ")))
}

//! How much memory a fresh login may lock: without it `ibv_reg_mr` fails, and NCCL takes TCP without a word.

use super::result::Judgement;
use crate::base::text::one_line;

/// Judges what `ulimit -l` said in a fresh login: KiB or `unlimited`. More than wanted is as good as wanted.
pub fn judge(code: i32, output: &str, wanted: &str) -> Judgement {
    let found = output.trim();
    let expected = words(wanted);
    match (code, limit(found), limit(wanted.trim())) {
        (0, Some(found_kib), Some(wanted_kib)) if found_kib >= wanted_kib => Judgement::passed(words(found)).expected(expected),
        (0, Some(_), Some(_)) => Judgement::failed("RW0808", words(found))
            .expected(expected)
            .effect("RDMA programs of this login cannot register their memory; NCCL then takes TCP sockets without a word")
            .next("railwright plan {inventory}"),
        _ => Judgement::unknown("RW0815", format!("ulimit -l said: {}", one_line(found, 80))).expected(expected),
    }
}

/// KiB, with `unlimited` above all.
fn limit(text: &str) -> Option<u64> {
    if text == "unlimited" || text == "infinity" { Some(u64::MAX) } else { text.parse().ok() }
}

fn words(text: &str) -> String {
    let text = text.trim();
    if limit(text) == Some(u64::MAX) { "unlimited".to_owned() } else { format!("{} KiB", one_line(text, 40)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::result::Verdict;

    #[test]
    fn the_default_of_a_login_is_too_little() {
        let judged = judge(0, "65536\n", "unlimited");
        assert_eq!((judged.verdict, judged.measured.as_str(), judged.expected.as_str()), (Verdict::Failed, "65536 KiB", "unlimited"));
    }

    #[test]
    fn as_much_or_more_passes_and_nonsense_is_unknown() {
        assert_eq!(judge(0, "unlimited\n", "unlimited").verdict, Verdict::Passed);
        assert_eq!(judge(0, "unlimited\n", "65536").verdict, Verdict::Passed);
        assert_eq!(judge(0, "sh: ulimit: -l: bad\n", "unlimited").verdict, Verdict::Unknown);
        assert_eq!(judge(2, "unlimited", "unlimited").verdict, Verdict::Unknown);
    }
}

//! "Did you mean": the known word that is nearest to a mistyped one.

/// The candidate that goes on where `word` ends (`ack` of `ack-managed`), or is within a few edits
/// of it, compared without case; nothing when none is near.
pub fn find_nearest_word<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A word of a hostile input can be long; nobody mistypes that much, and the table below is
    // quadratic.
    if word.chars().count() > 64 {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let begun = || {
        candidates
            .iter()
            .copied()
            .filter(|candidate| is_begun(word, candidate))
            .min_by_key(|candidate| candidate.len())
    };
    let same = candidates
        .iter()
        .copied()
        .find(|candidate| candidate.eq_ignore_ascii_case(word));
    same.or_else(begun).or_else(|| {
        find_within_distance(
            word,
            candidates.iter().copied(),
            (word.chars().count() / 3).clamp(1, 3),
        )
    })
}

/// Whether a word is the first of those that a candidate is made of.
fn is_begun(word: &str, candidate: &str) -> bool {
    let rest = candidate
        .get(..word.len())
        .filter(|first| first.eq_ignore_ascii_case(word))
        .map(|_| &candidate[word.len()..]);
    !word.is_empty() && rest.is_some_and(|rest| rest.starts_with(['-', '_', '.']))
}

/// The candidate that a word was meant to be, where the word may well be right: one edit away, or
/// none but for case.
pub fn suggest_correction<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.chars().count() > 64 {
        None
    } else {
        find_within_distance(word, candidates, 1)
    }
}

fn find_within_distance<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                compute_edit_distance(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the
/// other.
fn compute_edit_distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut current = vec![i + 1];
        for j in 0..to.len() {
            let replaced = previous[j] + usize::from(from[i] != to[j]);
            let mut best = replaced.min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j] {
                best = best.min(before[j - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["nodes", "netdev", "max_unavailable", "mtu"];
        for (word, found) in [
            ("ndoes", Some("nodes")),
            ("node", Some("nodes")),
            ("max_unavailible", Some("max_unavailable")),
            ("MTU", Some("mtu")),
            ("max", Some("max_unavailable")),
            ("switches", None),
            ("", None),
        ] {
            assert_eq!(find_nearest_word(word, known), found, "{word}");
        }
        assert_eq!(
            find_nearest_word("ack", ["acs", "ack-managed", "ack-dedicated-x"]),
            Some("ack-managed"),
            "before what is a letter away"
        );
    }
}

//! "Did you mean": the known word that is nearest to a mistyped one.

/// The candidate within a few edits of `word`, compared without case; nothing when none is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word of a hostile input can be long; nobody mistypes that much, and the table below is quadratic.
    if word.chars().count() > 64 {
        return None;
    }
    within(word, candidates, (word.chars().count() / 3).clamp(1, 3))
}

/// The same for a word that may well be right: one edit away, or none but for case.
pub fn mistyped<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > 64 { None } else { within(word, candidates, 1) }
}

fn within<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, limit: usize) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
fn distance(from: &str, to: &str) -> usize {
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
            ("switches", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), found, "{word}");
        }
    }
}

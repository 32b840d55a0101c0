//! The lines of a log that came since the look before. Looks overlap, because a log is asked for by
//! whole seconds.

/// How far a log was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// The time of the last line, as the kubelet wrote it before the line.
    last: Option<String>,
    /// Lines of that time that were read.
    of_last: usize,
}

impl Tail {
    /// From when on the log is to be asked for: RFC 3339, whole seconds.
    pub fn since(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        Some(format!(
            "{}Z",
            last.split_once('.')
                .map_or(last.trim_end_matches('Z'), |(seconds, _)| seconds)
        ))
    }

    /// The lines of a look that are new, without their times.
    pub fn take<'t>(&mut self, text: &'t str) -> Vec<&'t str> {
        let mut new = Vec::new();
        let mut of_last = 0;
        for line in text.lines() {
            let Some((time, said)) = line
                .split_once(' ')
                .or_else(|| line.ends_with('Z').then_some((line, "")))
            else {
                continue;
            };
            match &self.last {
                Some(last) if time < last.as_str() => continue,
                Some(last) if time == last => {
                    of_last += 1;
                    if of_last <= self.of_last {
                        continue;
                    }
                    self.of_last = of_last;
                }
                _ => {
                    self.last = Some(time.to_owned());
                    (self.of_last, of_last) = (1, 1);
                }
            }
            new.push(said);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_told_once() {
        let mut tail = Tail::default();
        assert_eq!(tail.since(), None);
        assert_eq!(
            tail.take(
                "2026-01-01T00:00:01.5Z a\n2026-01-01T00:00:02.25Z b\n2026-01-01T00:00:02.25Z c\n"
            ),
            ["a", "b", "c"]
        );
        assert_eq!(tail.since().as_deref(), Some("2026-01-01T00:00:02Z"));
        let again = "2026-01-01T00:00:02.25Z b\n\
                     2026-01-01T00:00:02.25Z c\n\
                     2026-01-01T00:00:02.25Z d\n\
                     2026-01-01T00:00:03Z \n\
                     2026-01-01T00:00:03Z e f";
        assert_eq!(tail.take(again), ["d", "", "e f"]);
        assert_eq!(tail.take(again), Vec::<&str>::new());
        // What was rotated away meanwhile is gone; what is no line of a log is left out.
        assert_eq!(tail.take("2026-01-01T00:00:09Z z\ngarbage\n"), ["z"]);
    }
}

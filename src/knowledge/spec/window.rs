//! Maintenance windows: when disruptive steps may begin. Pure: the time comes in as a value, and
//! the time zones are those that were built in, so that the same spec means the same on every
//! machine.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Day {
    fn weekday(self) -> Weekday {
        match self {
            Day::Mon => Weekday::Monday,
            Day::Tue => Weekday::Tuesday,
            Day::Wed => Weekday::Wednesday,
            Day::Thu => Weekday::Thursday,
            Day::Fri => Weekday::Friday,
            Day::Sat => Weekday::Saturday,
            Day::Sun => Weekday::Sunday,
        }
    }

    /// The word in the spec.
    pub fn word(self) -> &'static str {
        match self {
            Day::Mon => "mon",
            Day::Tue => "tue",
            Day::Wed => "wed",
            Day::Thu => "thu",
            Day::Fri => "fri",
            Day::Sat => "sat",
            Day::Sun => "sun",
        }
    }
}

/// A time in which disruptive steps may begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The days on which it opens, in its zone; every day unless said otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Day>,
    /// When it opens: the wall clock of its zone, such as `22:00`. Where the clocks skip that time,
    /// as soon as they go on.
    pub from: String,
    /// How long it is open: `6h`, `90m`, `1h 30m`; at most a week. Real hours, also in the night in
    /// which clocks change.
    #[serde(rename = "for")]
    pub lasts: String,
    /// The time zone, such as `Europe/Berlin` or `UTC`.
    pub zone: String,
}

/// The key of a window that cannot be read, with what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowParseError {
    /// `from`, `for` or `zone`.
    pub key: &'static str,
    /// In one line.
    pub why: String,
    /// What to write.
    pub fix: String,
}

/// The longest window, and how far openings are looked for on both sides.
const WEEK_DAYS: i64 = 7;

/// A window that can be asked.
#[derive(Debug, Clone)]
pub struct Opening {
    days: Vec<Weekday>,
    from: Time,
    lasts: SignedDuration,
    zone: TimeZone,
}

/// How it stands with all windows at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowState {
    /// Open; closed from then on.
    Open {
        /// When the last of the windows that are open or follow without a gap closes.
        until: Timestamp,
    },
    /// Closed.
    Closed {
        /// When the next one opens.
        opens: Option<Timestamp>,
    },
}

impl WindowParseError {
    fn new(key: &'static str, why: &str, fix: &str) -> Self {
        WindowParseError {
            key,
            why: why.to_owned(),
            fix: fix.to_owned(),
        }
    }
}

impl Window {
    /// The window with its texts read.
    pub fn read(&self) -> Result<Opening, WindowParseError> {
        let Some(from) = parse_time_of_day(&self.from) else {
            return Err(WindowParseError::new(
                "from",
                "it is no time of day",
                "write hours and minutes, such as `22:00`",
            ));
        };
        let Some(lasts) = parse_duration(&self.lasts) else {
            return Err(WindowParseError::new(
                "for",
                "it is no duration",
                "write such as `6h`, `90m`",
            ));
        };
        if lasts > SignedDuration::from_hours(24 * WEEK_DAYS) {
            return Err(WindowParseError::new(
                "for",
                "it is longer than a week",
                "leave the windows out where steps may begin at any time",
            ));
        }
        let Ok(zone) = TimeZoneDatabase::bundled().get(&self.zone) else {
            return Err(WindowParseError::new(
                "zone",
                "there is no such time zone",
                "write its name in the tz database, such as `Europe/Berlin`",
            ));
        };
        Ok(Opening {
            days: self.days.iter().map(|day| day.weekday()).collect(),
            from,
            lasts,
            zone,
        })
    }

    /// In words: `sat, sun from 22:00 for 6h (Europe/Berlin)`.
    pub fn words(&self) -> String {
        let days: Vec<&str> = self.days.iter().map(|day| day.word()).collect();
        let days = if days.is_empty() {
            "daily".to_owned()
        } else {
            days.join(", ")
        };
        format!(
            "{days} from {} for {} ({})",
            self.from, self.lasts, self.zone
        )
    }
}

/// A time such as `22:00`.
fn parse_time_of_day(text: &str) -> Option<Time> {
    let (hours, minutes) = text.split_once(':')?;
    if !is_two_digits(hours) || !is_two_digits(minutes) {
        return None;
    }
    Time::new(hours.parse().ok()?, minutes.parse().ok()?, 0, 0).ok()
}

fn is_two_digits(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A duration as people write it (`4h`, `1h 30m`): more than nothing, less than a hundred years.
pub fn parse_duration(text: &str) -> Option<SignedDuration> {
    let duration: SignedDuration = text.trim().parse().ok()?;
    (duration.is_positive() && duration < SignedDuration::from_hours(876_000)).then_some(duration)
}

impl Opening {
    /// The times that it is open about a moment: from then on, and until then.
    fn about(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let today = now.to_zoned(self.zone.clone()).date();
        let mut times = Vec::new();
        for offset in -WEEK_DAYS - 1..=WEEK_DAYS + 1 {
            if let Ok(date) = today.checked_add(offset.days()) {
                times.extend(self.on_day(date));
            }
        }
        times
    }

    /// When it opens on a day, and when it closes then.
    fn on_day(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.is_empty() && !self.days.contains(&date.weekday()) {
            return None;
        }
        // Of a time that the clocks skip, the one as much later; of one that comes twice, the
        // first.
        let opening = self
            .zone
            .to_ambiguous_timestamp(date.to_datetime(self.from));
        let from = opening.compatible().ok()?;
        Some((from, from.checked_add(self.lasts).ok()?))
    }
}

/// How it stands with windows at a moment. Windows that touch or overlap are one.
pub fn compute_window_state(openings: &[Opening], now: Timestamp) -> WindowState {
    let mut times: Vec<(Timestamp, Timestamp)> = openings
        .iter()
        .flat_map(|opening| opening.about(now))
        .collect();
    times.sort();
    let mut open: Option<Timestamp> = None;
    for (from, until) in &times {
        match open {
            _ if *from <= now && now < *until => open = open.max(Some(*until)),
            Some(end) if *from <= end => open = Some(end.max(*until)),
            _ => {}
        }
    }
    match open {
        Some(until) => WindowState::Open { until },
        None => WindowState::Closed {
            opens: times.iter().map(|(from, _)| *from).find(|from| *from > now),
        },
    }
}

/// A moment as people of a zone say it: `Sun 2026-03-29 22:00 CEST`.
pub fn format_local_time(at: Timestamp, zone: &str) -> String {
    match TimeZoneDatabase::bundled().get(zone) {
        Ok(zone) => at
            .to_zoned(zone)
            .strftime("%a %Y-%m-%d %H:%M %Z")
            .to_string(),
        Err(_) => at.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &[Day], from: &str, lasts: &str, zone: &str) -> Window {
        Window {
            days: days.to_vec(),
            from: from.to_owned(),
            lasts: lasts.to_owned(),
            zone: zone.to_owned(),
        }
    }

    fn at(windows: &[Window], now: &str) -> String {
        let openings: Vec<Opening> = windows
            .iter()
            .map(|window| window.read().unwrap())
            .collect();
        match compute_window_state(&openings, now.parse().unwrap()) {
            WindowState::Open { until } => format!("until {until}"),
            WindowState::Closed { opens } => format!("from {}", opens.unwrap()),
        }
    }

    #[test]
    fn a_window_is_open_from_its_first_moment_to_before_its_last() {
        let weekend = [window(
            &[Day::Sat, Day::Sun],
            "22:00",
            "6h",
            "Europe/Berlin",
        )];
        // 2026-01-03 is a Saturday; Berlin is at +01:00.
        assert_eq!(
            at(&weekend, "2026-01-03T20:59:59Z"),
            "from 2026-01-03T21:00:00Z"
        );
        assert_eq!(
            at(&weekend, "2026-01-03T21:00:00Z"),
            "until 2026-01-04T03:00:00Z"
        );
        assert_eq!(
            at(&weekend, "2026-01-04T02:59:59Z"),
            "until 2026-01-04T03:00:00Z"
        );
        assert_eq!(
            at(&weekend, "2026-01-04T03:00:00Z"),
            "from 2026-01-04T21:00:00Z"
        );
        assert_eq!(
            at(&weekend, "2026-01-05T03:00:00Z"),
            "from 2026-01-10T21:00:00Z",
            "a whole week is looked ahead"
        );
    }

    #[test]
    fn a_day_is_that_of_the_zone() {
        let monday = [window(&[Day::Mon], "01:00", "2h", "Asia/Tokyo")];
        assert_eq!(
            at(&monday, "2026-01-04T16:30:00Z"),
            "until 2026-01-04T18:00:00Z",
            "Sunday in UTC, Monday in Tokyo"
        );
    }

    #[test]
    fn windows_that_touch_or_overlap_are_one() {
        let two = [
            window(&[], "22:00", "2h", "UTC"),
            window(&[Day::Sun], "00:00", "3h", "UTC"),
        ];
        assert_eq!(
            at(&two, "2026-01-03T23:00:00Z"),
            "until 2026-01-04T03:00:00Z"
        );
        assert_eq!(
            at(&two, "2026-01-02T23:00:00Z"),
            "until 2026-01-03T00:00:00Z",
            "no Sunday follows"
        );
        let long = [window(&[Day::Sat], "00:00", "60h", "UTC")];
        assert_eq!(
            at(&long, "2026-01-05T11:00:00Z"),
            "until 2026-01-05T12:00:00Z",
            "the day that it opened on is two back"
        );
    }

    /// In Berlin the clocks go from 02:00 to 03:00 on 2026-03-29, and from 03:00 back to 02:00 on
    /// 2026-10-25.
    #[test]
    fn clocks_that_change_neither_skip_a_window_nor_open_it_twice() {
        let night = [window(&[], "02:30", "1h", "Europe/Berlin")];
        assert_eq!(
            at(&night, "2026-03-29T00:59:00Z"),
            "from 2026-03-29T01:30:00Z",
            "02:30 is skipped: 03:30, as much later"
        );
        assert_eq!(
            at(&night, "2026-03-29T01:30:00Z"),
            "until 2026-03-29T02:30:00Z"
        );
        assert_eq!(
            at(&night, "2026-10-25T00:30:00Z"),
            "until 2026-10-25T01:30:00Z",
            "the first 02:30"
        );
        assert_eq!(
            at(&night, "2026-10-25T01:30:00Z"),
            "from 2026-10-26T01:30:00Z",
            "and not the second"
        );
        let long = [window(&[Day::Sat], "22:00", "6h", "Europe/Berlin")];
        assert_eq!(
            at(&long, "2026-03-28T22:00:00Z"),
            "until 2026-03-29T03:00:00Z",
            "six real hours: until 05:00 on the wall"
        );
        assert_eq!(
            at(&long, "2026-10-24T22:00:00Z"),
            "until 2026-10-25T02:00:00Z",
            "until 03:00 on the wall"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let key = |window: Window| {
            window
                .read()
                .map(|_| "fine")
                .unwrap_or_else(|unread| unread.key)
        };
        let good = window(&[], "22:00", "6h", "UTC");
        assert_eq!(key(good.clone()), "fine");
        for from in [
            "", "22", "24:00", "22:60", "9:00", "+9:00", "22:00:00", "ten", "٢٢:00",
        ] {
            assert_eq!(
                key(Window {
                    from: from.to_owned(),
                    ..good.clone()
                }),
                "from",
                "{from}"
            );
        }
        for lasts in [
            "",
            "0h",
            "-1h",
            "6",
            "169h",
            "6h ago",
            "99999999999999999999h",
        ] {
            assert_eq!(
                key(Window {
                    lasts: lasts.to_owned(),
                    ..good.clone()
                }),
                "for",
                "{lasts}"
            );
        }
        for zone in ["", "Mars/Base", "../../etc/passwd", "CET-1CEST"] {
            assert_eq!(
                key(Window {
                    zone: zone.to_owned(),
                    ..good.clone()
                }),
                "zone",
                "{zone}"
            );
        }
        for (text, seconds) in [
            ("4h", 14_400),
            ("1h 30m", 5400),
            ("90 minutes", 5400),
            (" 20s ", 20),
        ] {
            assert_eq!(parse_duration(text).unwrap().as_secs(), seconds);
        }
    }

    #[test]
    fn a_moment_is_said_in_the_words_of_the_zone() {
        assert_eq!(
            format_local_time("2026-03-29T01:30:00Z".parse().unwrap(), "Europe/Berlin"),
            "Sun 2026-03-29 03:30 CEST"
        );
    }
}

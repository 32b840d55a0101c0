//! Units are types, so that a bandwidth is never added to a length.

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($name:ident, $inner:ty, $doc:literal) => {
        #[doc = $doc]
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            PartialOrd,
            Default,
            Serialize,
            Deserialize,
            schemars::JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);
    };
}
unit!(Bytes, u64, "A length or size in bytes.");
unit!(
    GigabitsPerSecond,
    f64,
    "A bandwidth in 10^9 bits per second, the unit of `ib_write_bw --report_gbits`."
);
unit!(
    Microseconds,
    f64,
    "A latency in 10^-6 seconds, the unit of `ib_read_lat`."
);
unit!(Milliseconds, u64, "A duration in 10^-3 seconds.");
unit!(Seconds, u64, "A duration in seconds.");

impl Seconds {
    /// As the standard library's duration.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0)
    }
}

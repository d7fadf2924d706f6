//! What the tests of several crates share. Only tests may use it: it reads files and environment variables, and
//! panics where something is amiss.

pub mod vectors;

use std::env;

/// How many cases a property test runs: `usual`, or `slow` where `RETRACE_SLOW` is set.
///
/// ```
/// let cases = retrace_testing::cases(256, 10_000);
/// assert!(cases == 256 || cases == 10_000);
/// ```
pub fn cases(usual: u32, slow: u32) -> u32 {
    if env::var_os("RETRACE_SLOW").is_some() { slow } else { usual }
}

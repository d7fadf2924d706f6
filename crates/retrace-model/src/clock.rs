//! Time, for floors that know no clock.

use std::time::Duration;

use crate::retry::Sleep;

/// Tells the time, and waits. What waits on a clock is over when the clock says so.
pub trait Clock: Sleep {
    /// How much time has passed since a moment that stays the same.
    fn now(&self) -> Duration;
}

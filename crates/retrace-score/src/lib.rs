//! Rollouts in, report data out: burden, deltas and aggregates.

//! Simulated worlds with known truth, and agents that see only their context.

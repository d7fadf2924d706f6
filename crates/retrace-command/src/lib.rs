//! Agents, strategies and environments that are programs in any language.

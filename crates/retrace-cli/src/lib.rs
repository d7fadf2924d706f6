//! The retrace program.

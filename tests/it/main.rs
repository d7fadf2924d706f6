//! End-to-end tests through the program.

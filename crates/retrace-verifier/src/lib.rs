//! Plans the cells of a verification and runs them with bounded concurrency.

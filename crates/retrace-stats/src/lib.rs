//! Numbers only: exact permutation and sign tests, and the bootstrap.

//! The Model port: a prompt in, a response out.

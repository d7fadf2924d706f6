//! Child processes that end with their owner, and the folders they work in.

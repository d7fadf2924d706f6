//! The Strategy port and the menu of compaction strategies.

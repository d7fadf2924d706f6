//! What a report shows, as text and JSON.

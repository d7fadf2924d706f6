//! Foreign transcripts to recordings, one module per format.

//! The Tool and Environment ports: toolboxes, replay, and the recorded environment.

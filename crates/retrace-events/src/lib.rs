//! The words of retrace: events, recordings, rounds, actions, signatures, boundaries, histories and rollouts.

//! A model over any provider of rig.

//! Scenarios of the reducer, whole values compared.

//! What is said of recordings not yet made, by how many there are.

use divan::{Bencher, black_box};
use retrace_stats::{Exact, Level, Recordings, flip_interval, joint_flips, max_t};

fn main() {
    divan::main();
}

/// Columns of four boundaries a recording, arms of three rollouts.
fn columns(count: usize, recordings: usize) -> Vec<Recordings> {
    let mut state = 1_u64;
    let mut below = |bound: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % bound
    };
    let mut difference = || Exact::new((below(16) - below(14)).into(), 3.into());
    (0..count)
        .map(|_| {
            let differences: Vec<Exact> = (0..4 * recordings).map(|_| difference()).collect();
            Recordings::new(differences.chunks(4))
        })
        .collect()
}

#[divan::bench(args = [12, 20, 250], sample_count = 20)]
fn flip_interval_of_recordings(bencher: Bencher<'_, '_>, recordings: usize) {
    let columns = columns(1, recordings);
    bencher.bench(|| flip_interval(black_box(&columns[0]), Level::PERCENT_95));
}

#[divan::bench(args = [12, 20, 250], sample_count = 20)]
fn max_t_of_6_columns_of_recordings(bencher: Bencher<'_, '_>, recordings: usize) {
    let columns = columns(6, recordings);
    bencher.bench(|| max_t(black_box(&columns)));
}

#[divan::bench(args = [12, 20, 250], sample_count = 20)]
fn joint_flips_of_2_columns_of_recordings(bencher: Bencher<'_, '_>, recordings: usize) {
    let columns = columns(2, recordings);
    bencher.bench(|| joint_flips(black_box(&columns), Level::PERCENT_95));
}

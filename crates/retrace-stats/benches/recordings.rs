//! What is said of recordings not yet made, by how many there are.

use divan::{Bencher, black_box};
use retrace_stats::{
    Arms, Exact, Level, Recordings, WorstRecording, bounded_mean, cluster_t, flip_interval, here_interval, joint_flips,
    max_t, variance_components,
};

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

#[divan::bench(args = [12, 20, 250], sample_count = 20)]
fn bounded_mean_of_recordings(bencher: Bencher<'_, '_>, recordings: usize) {
    let columns = columns(1, recordings);
    let worst = WorstRecording { boundaries: 4, bound: 5 };
    bencher.bench(|| bounded_mean(black_box(&columns[0]), worst, Level::PERCENT_95));
}

/// Both channels of one strategy, from the counts of its rollouts, but for the tests at the boundaries run.
#[divan::bench(args = [3, 12, 20, 250], sample_count = 20)]
fn one_strategy_of_recordings_of_4_boundaries(bencher: Bencher<'_, '_>, recordings: usize) {
    let mut state = 1_u32;
    let mut count = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) % 6
    };
    let rollouts: Vec<[Vec<u32>; 2]> =
        (0..8 * recordings).map(|_| [(); 2].map(|()| (0..3).map(|_| count()).collect())).collect();
    let arms: Vec<Arms<'_>> = rollouts.iter().map(|[pre, post]| Arms::Rollouts { pre, post }).collect();
    bencher.bench(|| {
        let channels: Vec<&[Arms<'_>]> = black_box(&arms).chunks(4 * recordings).collect();
        let columns: Vec<Recordings> = channels
            .iter()
            .map(|channel| {
                let differences: Vec<Exact> = channel.iter().filter_map(Arms::difference).collect();
                Recordings::new(differences.chunks(4))
            })
            .collect();
        let worst = WorstRecording { boundaries: 4, bound: 5 };
        let flips = joint_flips(&columns, Level::PERCENT_95);
        let limits: Vec<_> = columns.iter().map(|column| bounded_mean(column, worst, Level::PERCENT_95)).collect();
        let across: Vec<_> = columns.iter().map(|column| cluster_t(column, Level::PERCENT_95)).collect();
        let here: Vec<_> = channels.iter().map(|channel| here_interval(channel, Level::PERCENT_95)).collect();
        let components: Vec<_> =
            channels.iter().map(|channel| variance_components(&channel.chunks(4).collect::<Vec<_>>())).collect();
        (flips, limits, across, here, components)
    });
}

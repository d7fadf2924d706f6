//! The bootstrap with all resamples, by values, their grid, and clusters.

use divan::{Bencher, black_box};
use retrace_stats::{Exact, Level, cluster_bootstrap_mean, exact_bootstrap_mean};

fn main() {
    divan::main();
}

/// Differences of means up to five either way, on a grid of each of the denominators in turn.
fn values(n: i64, denominators: &[i64]) -> Vec<Exact> {
    let turns = denominators.iter().copied().cycle();
    (0..n).zip(turns).map(|(i, d)| Exact::new((i * (i + 3) % (10 * d + 1) - 5 * d).into(), d.into())).collect()
}

fn run(bencher: Bencher<'_, '_>, n: i64, denominators: &[i64]) {
    let values = values(n, denominators);
    bencher.bench(|| exact_bootstrap_mean(black_box(&values), Level::PERCENT_95));
}

#[divan::bench]
fn all_resamples_of_12_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 12, &[3]);
}

#[divan::bench]
fn all_resamples_of_100_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 100, &[3]);
}

#[divan::bench]
fn all_resamples_of_400_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[3]);
}

#[divan::bench]
fn all_resamples_of_10000_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 10_000, &[3]);
}

#[divan::bench(sample_count = 5)]
fn all_resamples_of_400_with_arms_of_1_to_5(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[12, 15, 20, 5, 3, 4, 1]);
}

#[divan::bench(sample_count = 5)]
fn all_resamples_of_100_with_arms_of_1_to_10(bencher: Bencher<'_, '_>) {
    run(bencher, 100, &[63, 40, 70, 90, 56, 10]);
}

fn run_clusters(bencher: Bencher<'_, '_>, n: usize, sizes: &[usize]) {
    let values = values(5 * n as i64, &[3]);
    let sizes = sizes.iter().copied().cycle();
    let clusters: Vec<&[Exact]> = values.chunks(5).zip(sizes).take(n).map(|(chunk, size)| &chunk[..size]).collect();
    bencher.bench(|| cluster_bootstrap_mean(black_box(&clusters), Level::PERCENT_95));
}

#[divan::bench]
fn all_resamples_of_8_clusters(bencher: Bencher<'_, '_>) {
    run_clusters(bencher, 8, &[4, 3, 2]);
}

#[divan::bench]
fn all_resamples_of_12_clusters(bencher: Bencher<'_, '_>) {
    run_clusters(bencher, 12, &[4, 3, 2]);
}

#[divan::bench(sample_count = 5)]
fn all_resamples_of_40_clusters(bencher: Bencher<'_, '_>) {
    run_clusters(bencher, 40, &[4, 3, 2]);
}

#[divan::bench]
fn all_resamples_of_40_clusters_of_4(bencher: Bencher<'_, '_>) {
    run_clusters(bencher, 40, &[4]);
}

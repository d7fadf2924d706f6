//! The percentile bootstrap, by resamples, values and columns.

use divan::{Bencher, black_box};
use retrace_stats::{Exact, Level, bootstrap_means};

fn main() {
    divan::main();
}

fn run(bencher: Bencher<'_, '_>, columns: i64, values: i64, denominator: i64) {
    let columns: Vec<Vec<Exact>> = (0..columns)
        .map(|column| (0..values).map(|i| Exact::new((i * (i + column) % 23 - 9).into(), denominator.into())).collect())
        .collect();
    let slices: Vec<&[Exact]> = columns.iter().map(Vec::as_slice).collect();
    bencher.bench(|| bootstrap_means(black_box(&slices), 10_000, Level::PERCENT_95, 7));
}

#[divan::bench]
fn resamples_10000_of_12_values(bencher: Bencher<'_, '_>) {
    run(bencher, 1, 12, 3);
}

#[divan::bench]
fn resamples_10000_of_100_values(bencher: Bencher<'_, '_>) {
    run(bencher, 1, 100, 3);
}

#[divan::bench]
fn resamples_10000_of_100_values_in_25_columns(bencher: Bencher<'_, '_>) {
    run(bencher, 25, 100, 3);
}

//! The exact tests, by how many differences there are and how fine their grid is.

use divan::{Bencher, black_box};
use retrace_stats::{Exact, exact_difference, exact_sign_test, nearest_double, sign_flip_test};

fn main() {
    divan::main();
}

/// Differences of means, the arms of `arms` rollouts in turn, sums up to five actions a rollout.
fn differences(count: usize, arms: &[i64]) -> Vec<Exact> {
    let mut state = 1u64;
    let mut below = |bound: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % bound
    };
    let mut turns = arms.iter().copied().cycle();
    let mut mean = || turns.next().map(|arm| Exact::new(below(5 * arm + 1).into(), arm.into())).unwrap_or_default();
    (0..count).map(|_| mean() - mean()).collect()
}

fn run(bencher: Bencher<'_, '_>, count: usize, arms: &[i64]) {
    let differences = differences(count, arms);
    bencher.bench(|| sign_flip_test(black_box(&differences)));
}

#[divan::bench]
fn flip_12_on_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 12, &[3]);
}

#[divan::bench]
fn flip_200_on_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 200, &[3]);
}

#[divan::bench]
fn flip_400_on_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[3]);
}

#[divan::bench]
fn flip_1000_on_thirds(bencher: Bencher<'_, '_>) {
    run(bencher, 1_000, &[3]);
}

#[divan::bench]
fn flip_400_with_arms_of_1_to_5(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[1, 2, 3, 4, 5]);
}

#[divan::bench(sample_count = 20)]
fn flip_200_with_arms_of_1_to_10(bencher: Bencher<'_, '_>) {
    run(bencher, 200, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 7]);
}

#[divan::bench(sample_count = 10)]
fn flip_40_with_arms_of_30_to_60(bencher: Bencher<'_, '_>) {
    run(bencher, 40, &[31, 37, 41, 43, 47, 53, 59]);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn flip_40_beyond_128_bits(bencher: Bencher<'_, '_>) {
    run(bencher, 40, &[983, 991, 997, 977, 971, 967, 953, 947, 941, 937, 929, 919, 911, 907, 887, 883, 881]);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn draw_150_with_arms_of_30_to_60(bencher: Bencher<'_, '_>) {
    run(bencher, 150, &[31, 37, 41, 43, 47, 53, 59, 32, 49, 55]);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn draw_400_beyond_128_bits(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[983, 991, 997, 977, 971, 967, 953, 947, 941, 937, 929, 919, 911, 907, 887, 883, 881]);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn flip_and_draw_all_rows_of_the_vectors(bencher: Bencher<'_, '_>) {
    let rows = retrace_testing::vectors::rows("verifier/permutation.jsonl");
    let parse = |row: &serde_json::Value| -> Vec<Exact> {
        let differences = row["diffs"].as_array().into_iter().flatten();
        differences.filter_map(|difference| difference.as_str()?.parse().ok()).collect()
    };
    let rows: Vec<_> = rows.iter().map(parse).collect();
    bencher.bench(|| rows.iter().map(|row| sign_flip_test(black_box(row)).nonzero).sum::<usize>());
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn flip_4000_with_arms_of_1_to_5_in_doubles(bencher: Bencher<'_, '_>) {
    run(bencher, 4_000, &[1, 2, 3, 4, 5]);
}

#[divan::bench]
fn sign_1000(bencher: Bencher<'_, '_>) {
    let differences = differences(1_000, &[3]);
    bencher.bench(|| exact_sign_test(black_box(&differences)));
}

#[divan::bench]
fn recover_1000_doubles_with_arms_of_1_to_1000(bencher: Bencher<'_, '_>) {
    let doubles: Vec<f64> = differences(1_000, &[997, 991, 1_000, 3, 512]).iter().map(nearest_double).collect();
    bencher.bench(|| doubles.iter().map(|double| exact_difference(black_box(*double))).filter(Result::is_ok).count());
}

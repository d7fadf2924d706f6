//! The permutation test of rollouts, by boundaries, rollouts in an arm, and by whether there is an effect.

use divan::{Bencher, black_box};
use retrace_stats::{Arms, rollout_permutation_test};

fn main() {
    divan::main();
}

/// Arms of sizes in turn, counts up to five, most of them 0; at one boundary in `harmed_every` POST counts more.
fn run(bencher: Bencher<'_, '_>, n: usize, sizes: &[usize], harmed_every: usize) {
    let mut state = 7u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut sizes = sizes.iter().copied().cycle();
    let mut arm = |more: u64| -> Vec<u32> {
        let size = sizes.next().unwrap_or(1);
        (0..size).map(|_| ((below(6) * below(2) + more * below(6)) as u32).min(5)).collect()
    };
    let arms: Vec<_> = (0..n).map(|i| (arm(0), arm(u64::from(i % harmed_every == 0)))).collect();
    let counts: Vec<_> = arms.iter().map(|(pre, post)| Arms::Rollouts { pre, post }).collect();
    bencher.bench(|| rollout_permutation_test(black_box(&counts)));
}

#[divan::bench]
fn permute_12_of_3_rollouts(bencher: Bencher<'_, '_>) {
    run(bencher, 12, &[3], 3);
}

#[divan::bench(sample_count = 20)]
fn permute_400_of_3_rollouts(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[3], 1_000);
}

#[divan::bench(sample_count = 20)]
fn permute_400_of_3_rollouts_with_harm(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[3], 3);
}

#[divan::bench(sample_count = 20)]
fn permute_1000_of_5_rollouts(bencher: Bencher<'_, '_>) {
    run(bencher, 1_000, &[5], 10_000);
}

#[divan::bench(sample_count = 20)]
fn permute_1000_of_5_rollouts_with_harm(bencher: Bencher<'_, '_>) {
    run(bencher, 1_000, &[5], 3);
}

#[divan::bench(sample_count = 5)]
fn permute_400_of_1_to_5_rollouts(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[5, 4, 5, 3, 2, 5, 1], 3);
}

#[divan::bench(sample_count = 2, sample_size = 1)]
fn draw_400_of_10_to_20_rollouts(bencher: Bencher<'_, '_>) {
    run(bencher, 400, &[10, 11, 13, 17, 19, 20, 16], 3);
}

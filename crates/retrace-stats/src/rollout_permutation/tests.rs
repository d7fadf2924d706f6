//! The definition by enumeration, the vectors, and what may not matter.

use num_bigint::BigInt;
use num_traits::{One, Zero};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::vectors;
use crate::{Exact, sign_flip_test};

type Boundary = (Vec<u32>, Vec<u32>);

fn test(boundaries: &[Boundary]) -> Result<RolloutPermutationTest, RolloutPermutationError> {
    let counts: Vec<_> = boundaries.iter().map(|(pre, post)| Arms::Rollouts { pre, post }).collect();
    rollout_permutation_test(&counts)
}

fn exact(p: &PValue) -> Exact {
    p.exact().unwrap_or_else(|| panic!("{p:?} is not exact")).clone()
}

fn sides(test: &RolloutPermutationTest) -> [Exact; 3] {
    [&test.p, &test.p_harm, &test.p_gain].map(exact)
}

/// Every way to call so many of some counts POST: the sum of those.
fn choices(pooled: &[u32], n_post: usize) -> Vec<u32> {
    let subsets = (0..1u32 << pooled.len()).filter(|subset| subset.count_ones() as usize == n_post);
    let sum = |subset: u32| (0..pooled.len()).filter(|i| subset >> i & 1 == 1).map(|i| pooled[i]).sum();
    subsets.map(sum).collect()
}

/// The definition, on fractions: the shares of all allocations with at least, and at most, the observed difference.
fn by_enumeration(boundaries: &[Boundary]) -> [Exact; 2] {
    let mut totals = vec![Exact::zero()];
    let mut observed = Exact::zero();
    for (pre, post) in boundaries {
        let pooled = [pre.as_slice(), post].concat();
        let all: u32 = pooled.iter().sum();
        let difference =
            |sum: u32| Exact::new(sum.into(), post.len().into()) - Exact::new((all - sum).into(), pre.len().into());
        observed += difference(post.iter().sum());
        let choices = choices(&pooled, post.len());
        totals = totals.iter().flat_map(|total| choices.iter().map(move |&sum| total + difference(sum))).collect();
    }
    let share = |is: &dyn Fn(&Exact) -> bool| {
        Exact::new(totals.iter().filter(|total| is(total)).count().into(), totals.len().into())
    };
    [share(&|total| *total >= observed), share(&|total| *total <= observed)]
}

fn counts(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|count| count.as_u64().unwrap() as u32).collect()
}

#[test]
fn agrees_with_the_vectors() {
    for case in &retrace_testing::vectors::rows("stats/rollout_permutation.jsonl") {
        let boundaries = case["boundaries"].as_array().unwrap();
        let boundaries: Vec<Boundary> =
            boundaries.iter().map(|boundary| (counts(&boundary["pre"]), counts(&boundary["post"]))).collect();
        let test = test(&boundaries).unwrap();
        let expect = &case["expect"];
        let name = &case["name"];
        assert_eq!(test.mean, vectors::exact(&expect["mean"]), "{name}");
        assert_eq!(test.allocations.to_string(), expect["allocations"], "{name}");
        assert_eq!(sides(&test), ["p", "p_harm", "p_gain"].map(|key| vectors::exact(&expect[key])), "{name}");
    }
}

#[test]
fn without_two_arms_there_is_no_answer() {
    for boundaries in [vec![], vec![(vec![1], vec![])], vec![(vec![], vec![1, 2]), (vec![], vec![])]] {
        let error = test(&boundaries).unwrap_err();
        assert_eq!(error.to_string(), "no boundary has rollouts in both arms");
    }
}

#[test]
fn a_boundary_with_one_arm_is_left_out_and_one_that_is_all_alike_cannot_tell() {
    let plain = vec![(vec![0, 1], vec![2, 3])];
    let more = [plain.clone(), vec![(vec![5], vec![]), (vec![2, 2], vec![2])]].concat();
    let (plain, more) = (test(&plain).unwrap(), test(&more).unwrap());
    assert_eq!((more.boundaries, more.varying), (2, 1));
    assert_eq!(more.mean, plain.mean.clone() / BigInt::from(2));
    assert_eq!(sides(&more), sides(&plain));
    let alike = test(&[(vec![3], vec![3, 3])]).unwrap();
    assert_eq!((alike.varying, sides(&alike)), (0, [(); 3].map(|()| Exact::one())));
}

#[test]
fn one_boundary_has_its_allocations_for_a_floor() {
    let of = |samples: usize| exact(&test(&[(vec![0; samples], vec![5; samples])]).unwrap().p);
    assert_eq!([of(1), of(3), of(5)], ["1", "1/10", "1/126"].map(|p| p.parse().unwrap()));
}

/// Boundaries with arms of `sizes`, in turn, and counts up to five.
fn boundaries(n: usize, sizes: &[usize]) -> Vec<Boundary> {
    let mut state = 7u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut sizes = sizes.iter().copied().cycle();
    let mut arm =
        |more: u64| (0..sizes.next().unwrap()).map(|_| (below(6) * below(2) + more * below(2)) as u32).collect();
    (0..n).map(|i| (arm(0), arm(u64::from(i % 6 == 0)))).collect()
}

#[test]
fn many_boundaries_are_counted_in_doubles_and_huge_arms_too() {
    let many = test(&boundaries(1_000, &[5])).unwrap();
    let PValue::Certified { p, relative_error } = many.p_harm else { panic!("{:?}", many.p_harm) };
    assert!(p < 0.1 && relative_error < 1e-11, "{p} {relative_error}");
    let huge = test(&boundaries(3, &[60, 45])).unwrap();
    assert_eq!(huge.p.method(), "certified");
}

#[test]
fn grids_that_no_array_holds_are_drawn() {
    let test = test(&boundaries(40, &[31, 37, 41, 43, 47, 53])).unwrap();
    let PValue::Sampled { draws, standard_error, .. } = test.p_harm else { panic!("{:?}", test.p_harm) };
    assert!(draws >= 9_999 && standard_error < 0.01);
    // A count that is out of all proportion.
    let fine = [(vec![0, 4_000_000_000], vec![1, 7]), (vec![2], vec![3, 5])];
    let fine = self::test(&fine).unwrap();
    let near = by_enumeration(&[(vec![0, 400], vec![1, 7]), (vec![2], vec![3, 5])]);
    for (p, near) in [&fine.p_harm, &fine.p_gain].into_iter().zip(near) {
        let PValue::Sampled { standard_error, .. } = p else { panic!("{p:?}") };
        assert!((p.to_f64() - crate::nearest_double(&near)).abs() < 5.0 * standard_error, "{p:?}");
    }
}

/// Small boundaries of any arms.
fn small(n: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Boundary>> {
    let arm = || prop::collection::vec(0..6u32, 1..=3);
    prop::collection::vec((arm(), arm()), n)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(128, 3_000)))]

    #[test]
    fn p_is_the_share_of_allocations(boundaries in small(1..=3)) {
        let test = test(&boundaries).unwrap();
        let [p_harm, p_gain] = by_enumeration(&boundaries);
        let p = (p_harm.clone().min(p_gain.clone()) * BigInt::from(2)).min(Exact::one());
        prop_assert_eq!(sides(&test), [p, p_harm, p_gain]);
    }

    #[test]
    fn neither_order_nor_unit_nor_level_matter_and_arms_may_change_sides(
        (boundaries, shuffled) in small(1..=12).prop_flat_map(|b| (Just(b.clone()), Just(b).prop_shuffle())),
        scale in 1..1_000u32,
        shift in 0..1_000u32,
    ) {
        let moved = |arm: &Vec<u32>| arm.iter().rev().map(|count| count * scale + shift).collect();
        let other: Vec<Boundary> = shuffled.iter().map(|(pre, post)| (moved(post), moved(pre))).collect();
        let (test, other) = (test(&boundaries).unwrap(), self::test(&other).unwrap());
        prop_assert_eq!(test.p, other.p);
        prop_assert_eq!((test.p_harm, test.p_gain), (other.p_gain, other.p_harm));
        prop_assert_eq!(-test.mean * BigInt::from(scale), other.mean);
    }

    #[test]
    fn single_rollouts_are_flips_of_signs(pairs in prop::collection::vec((0..6u32, 0..6u32), 1..60)) {
        let boundaries: Vec<Boundary> = pairs.iter().map(|&(pre, post)| (vec![pre], vec![post])).collect();
        let test = test(&boundaries).unwrap();
        let difference = |&(pre, post): &(u32, u32)| Exact::from_integer((i64::from(post) - i64::from(pre)).into());
        let flips = sign_flip_test(&pairs.iter().map(difference).collect::<Vec<_>>());
        prop_assert_eq!((test.p, test.p_harm, test.p_gain), (flips.p, flips.p_harm, flips.p_gain));
    }

    #[test]
    fn every_way_says_the_same(boundaries in small(1..=9)) {
        let counts: Vec<_> = boundaries.iter().map(|(pre, post)| ArmCounts { pre, post }).collect();
        let pooled = Pooled::new(counts.iter().filter_map(Labels::new).collect());
        let (at_most, at_least) = pooled.sides();
        let sums: Vec<_> = pooled.boundaries.iter().map(|labels| labels.sums().unwrap()).collect();
        for is_lower in [true, false] {
            let bound = |is_lower: bool| -> BigUint {
                let distance = |labels: &Labels| {
                    if is_lower { labels.observed - labels.least() } else { labels.greatest() - labels.observed }
                };
                pooled.boundaries.iter().map(|labels| &labels.factor * distance(labels)).sum()
            };
            let side = |is_lower| Side::new(&pooled.boundaries, &sums, is_lower, &bound(is_lower));
            let (near, far) = side(is_lower).unwrap().certified(|| side(!is_lower)).unwrap();
            let pairs = if is_lower { [(near, &at_most), (far, &at_least)] } else { [(near, &at_least), (far, &at_most)] };
            for (rounded, expected) in pairs {
                let PValue::Certified { p, relative_error } = rounded else { panic!("{rounded:?}") };
                let [p, error] = [p, relative_error].map(|double| Exact::from_float(double).unwrap());
                prop_assert!(num_traits::abs(exact(expected) - &p) <= p * error, "{:?} {:?}", rounded, expected);
            }
        }
        let (at_most, at_least) = (at_most.to_f64(), at_least.to_f64());
        if boundaries.len() < 3 {
            let hits = sampled::draw(&pooled.boundaries);
            for (hits, p) in [(hits.at_most, at_most), (hits.at_least, at_least)] {
                prop_assert!((f64::from(hits) / 999_999.0 - p).abs() < 6.0 * (p * (1.0 - p) / 1e6).sqrt() + 1e-9);
            }
        }
    }

    #[test]
    fn under_the_null_no_p_is_too_small_too_often(boundaries in small(1..=2)) {
        // All allocations of the pooled rollouts are as likely: test each of them.
        let mut cases: Vec<Vec<Boundary>> = vec![vec![]];
        for (pre, post) in &boundaries {
            let pooled = [pre.as_slice(), post].concat();
            let subsets = (0..1u32 << pooled.len()).filter(|subset| subset.count_ones() as usize == post.len());
            let deal = |subset: u32| {
                let (post, pre): (Vec<_>, Vec<_>) = (0..pooled.len()).partition(|i| subset >> i & 1 == 1);
                let counts = |arm: Vec<usize>| arm.into_iter().map(|i| pooled[i]).collect::<Vec<_>>();
                (counts(pre), counts(post))
            };
            let deals: Vec<Boundary> = subsets.map(deal).collect();
            cases = cases.iter().flat_map(|case| deals.iter().map(|deal| [case.as_slice(), std::slice::from_ref(deal)].concat())).collect();
        }
        let ps: Vec<[Exact; 3]> = cases.iter().map(|case| sides(&test(case).unwrap())).collect();
        for side in 0..3 {
            let mut sorted: Vec<&Exact> = ps.iter().map(|p| &p[side]).collect();
            sorted.sort_unstable();
            for (index, level) in sorted.iter().enumerate() {
                prop_assert!(Exact::new((index + 1).into(), ps.len().into()) <= **level);
            }
        }
    }
}

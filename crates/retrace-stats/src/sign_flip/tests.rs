//! The definition by enumeration, the vectors, every way of counting against the others.

use proptest::prelude::*;

use super::*;
use crate::vectors;

/// The definition, on fractions: every sign pattern, one flip after another in Gray code. The shares at least as far
/// from zero, with at least the sum, and with at most the sum.
fn by_enumeration(differences: &[Exact]) -> [Exact; 3] {
    let patterns = 1usize << differences.len();
    let mut signed = differences.to_vec();
    let observed: Exact = signed.iter().sum();
    let mut sum = observed.clone();
    let mut extreme = [0; 3];
    for pattern in 1..=patterns {
        let is_extreme =
            [num_traits::abs(sum.clone()) >= num_traits::abs(observed.clone()), sum >= observed, sum <= observed];
        extreme.iter_mut().zip(is_extreme).for_each(|(extreme, is)| *extreme += usize::from(is));
        if pattern < patterns {
            let flip = pattern.trailing_zeros() as usize;
            sum -= &signed[flip] + &signed[flip];
            signed[flip] = -&signed[flip];
        }
    }
    extreme.map(|extreme| Exact::new(extreme.into(), patterns.into()))
}

fn exacts(values: &[&str]) -> Vec<Exact> {
    values.iter().map(|value| value.parse().unwrap()).collect()
}

fn exact(p: PValue) -> Exact {
    p.exact().unwrap_or_else(|| panic!("{p:?} is not exact")).clone()
}

fn p(differences: &[Exact]) -> Exact {
    exact(sign_flip_test(differences).p)
}

/// Differences of means with few values and many ties, or with many of both.
fn differences(sizes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Exact>> {
    let difference = |numerators: i64, denominators: i64| {
        (-numerators..=numerators, 1..=denominators).prop_map(|(p, q)| Exact::new(p.into(), q.into()))
    };
    prop_oneof![
        prop::collection::vec(difference(4, 3), sizes.clone()),
        prop::collection::vec(difference(5_000, 999_000), sizes),
    ]
}

proptest! {
    #[test]
    fn few_cells_are_counted_in_words_as_many_are(
        mut magnitudes in prop::collection::vec(1usize..20, 0..62), more in 0usize..2, share in 0.0..1.0_f64,
    ) {
        let signs = magnitudes.len() + more;
        let bound = (magnitudes.iter().sum::<usize>() as f64 / 2.0 * share) as usize;
        magnitudes.retain(|magnitude| *magnitude <= bound);
        magnitudes.sort_unstable();
        let counted = Shares::counted(dense::Plan::of(&magnitudes, bound).unwrap().count(), signs);
        let in_words = Shares::in_words(&magnitudes, bound, signs);
        prop_assert_eq!((in_words.two_sided, in_words.toward, in_words.against), (counted.two_sided, counted.toward, counted.against));
    }
}

#[test]
fn without_a_lean_p_is_one() {
    for values in [&[][..], &["0"], &["0", "0"], &["1/3", "-1/3"], &["1/2", "1/4", "1/4", "-1"]] {
        assert_eq!(p(&exacts(values)), Exact::one());
    }
}

#[test]
fn zeros_count_for_nothing() {
    let test = sign_flip_test(&exacts(&["0", "1/3", "0", "1/3", "1/3"]));
    assert_eq!((test.nonzero, exact(test.p)), (3, "1/4".parse().unwrap()));
}

#[test]
fn a_grid_beyond_any_word_is_counted() {
    let fine = exacts(&["1/170141183460469231731687303715884105727", "1/2305843009213693951", "-1/524287", "3"]);
    let values = [fine.as_slice(), &fine, &exacts(&["7/3", "-1/1000003"])].concat();
    assert_eq!(p(&values), by_enumeration(&values)[0]);
}

#[test]
fn one_odd_difference_does_not_make_many_coarse_ones_too_many() {
    let thirds: Vec<Exact> = (0..300i64).map(|i| Exact::new((i % 7 - 2).into(), 3.into())).collect();
    let with = |odd: Exact| [thirds.as_slice(), &[odd]].concat();
    let odd: Exact = "1/1000003".parse().unwrap();
    let more = {
        let mut more = thirds.clone();
        let negative = more.iter().position(|third| *third == "-1/3".parse().unwrap()).unwrap();
        more[negative] = -&more[negative];
        more
    };
    // Too small to reach the next sum of thirds, the odd one decides the ties alone: half of
    // them with the sign it has.
    assert_eq!(p(&with(odd)), (p(&thirds) + p(&more)) / BigInt::from(2));
}

#[test]
fn without_a_lean_each_side_has_half_and_the_ties() {
    let test = sign_flip_test(&exacts(&["2", "-1", "-1"]));
    assert_eq!([test.p, test.p_harm, test.p_gain].map(exact), ["1", "5/8", "5/8"].map(|p| p.parse().unwrap()));
}

#[test]
fn the_floor_is_that_of_the_differences_that_are_not_zero() {
    let check = |values: &[&str], floor: &str| {
        assert_eq!(sign_flip_test(&exacts(values)).p_floor(), floor.parse().unwrap(), "{values:?}");
    };
    check(&[], "1");
    check(&["0", "0"], "1");
    check(&["0", "2"], "1");
    check(&["1", "-1/2", "0", "3"], "1/4");
}

#[test]
fn a_grid_too_fine_for_exact_counts_is_counted_in_doubles() {
    // Counts of 4,000 bits, which words hold within the limit only where there are fewer sums.
    let values: Vec<Exact> = (0..4_000i64).map(|i| Exact::from_integer((i * i % 61 - 29).into())).collect();
    let test = sign_flip_test(&values);
    assert_eq!(test.p.method(), "certified");
}

#[test]
fn what_no_way_counts_is_drawn() {
    // Sums of powers of two are in the order of their signs, so the greatest power decides.
    let values: Vec<Exact> = (0..100).map(|i| Exact::from_integer(BigInt::from(-2).pow(i))).collect();
    let SignFlipTest { nonzero, p, p_harm, p_gain } = sign_flip_test(&values);
    assert_eq!(nonzero, 100);
    // The observed sum is -(2^100 - 1)/3.
    for (p, near) in [(p, 2.0 / 3.0), (p_harm, 2.0 / 3.0), (p_gain, 1.0 / 3.0)] {
        let PValue::Sampled { draws, standard_error, .. } = p else { panic!("{p:?}") };
        assert_eq!(draws, 999_999);
        assert!((p.to_f64() - near).abs() < 4.0 * standard_error && standard_error < 0.0006, "{p:?}");
    }
}

#[test]
fn thousands_of_differences_do_not_overflow() {
    for n in [1_000u32, 1_100, 4_096] {
        // All of one sign: 2 patterns of 2^n.
        let one = sign_flip_test(&vec![Exact::one(); n as usize]);
        assert_eq!(exact(one.p), share_of_patterns(BigUint::from(2u8), n as usize));
        // The same through the doubles, and through the draws.
        let subsets = Subsets::new(vec![BigUint::one(); n as usize], BigUint::zero());
        let tail = Within::new(&subsets.magnitudes, &subsets.bound).certified(n as usize).unwrap();
        assert_eq!(PValue::certified(tail.up_to), PValue::Below(1e-290));
    }
}

#[test]
fn forty_differences_are_counted_on_any_grid() {
    // Sums of signed powers are in the order of their signs, read from the greatest power: as
    // binary numbers, so many below the observed one as that number says.
    let below: u64 = (0..39).filter(|i| i % 3 == 0).map(|i| 1 << i).sum();
    let expected = Exact::new(((1 << 39) - below).into(), (1u64 << 39).into());
    for base in [2, 32] {
        let signed = |i: u32| BigInt::from(base).pow(i) * if i.is_multiple_of(3) { 1 } else { -1 };
        let values: Vec<Exact> = (0..40).map(|i| Exact::from_integer(signed(i))).collect();
        assert_eq!(p(&values), expected, "powers of {base}");
    }
}

#[test]
fn short_grids_are_within_the_limits_however_many_differences_there_are() {
    for differences in [21u64, 64, 65, 200, 1_000, 4_472] {
        let span = 20_000_000 / differences;
        let magnitudes = vec![BigUint::from(span / differences); differences as usize];
        assert!(dense::Plan::new(&magnitudes, &(span / 2).into()).is_some(), "{differences}");
    }
}

#[test]
fn agrees_with_the_vectors() {
    for case in &retrace_testing::vectors::rows("verifier/permutation.jsonl") {
        let test = sign_flip_test(&vectors::exacts(&case["diffs"]));
        match test.p {
            PValue::Exact(p) => vectors::assert_p(case, &p),
            drawn => assert!(case["p"].is_null() && drawn.method() == "sampled", "{}: {drawn:?}", case["name"]),
        }
    }
}

fn assert_test(case: &serde_json::Value, test: SignFlipTest) {
    let expect = &case["expect"];
    let [p, p_harm, p_gain, p_floor] = ["p", "p_harm", "p_gain", "p_floor"].map(|key| vectors::exact(&expect[key]));
    let name = &case["name"];
    assert_eq!(test.nonzero, expect["nonzero"], "{name}");
    assert_eq!(test.p_floor(), p_floor, "{name}");
    assert_eq!([test.p, test.p_harm, test.p_gain].map(exact), [p, p_harm, p_gain], "{name}");
}

#[test]
fn all_three_shares_agree_with_the_vectors() {
    for case in &retrace_testing::vectors::rows("stats/signflip.jsonl") {
        assert_test(case, sign_flip_test(&vectors::exacts(&case["deltas"])));
    }
}

#[test]
fn clusters_agree_with_the_vectors() {
    for case in &retrace_testing::vectors::rows("stats/recording_signflip.jsonl") {
        assert_test(case, cluster_sign_flip_test(&vectors::columns(&case["recordings"])));
    }
    for case in &retrace_testing::vectors::rows("stats/degenerate.jsonl") {
        let test = cluster_sign_flip_test(&vectors::columns(&case["recordings"]));
        assert_eq!(test.p_floor(), vectors::exact(&case["expect"]["p_floor"]), "{}", case["name"]);
        assert_eq!(exact(test.p), vectors::exact(&case["expect"]["p"]), "{}", case["name"]);
    }
}

/// What the ways other than the exact ones say of small magnitudes, each with how far it may be off.
fn by_other_ways(magnitudes: &[usize], bound: usize) -> [[(f64, f64); 2]; 2] {
    let subsets = Subsets::new(magnitudes.iter().map(|&it| it.into()).collect(), bound.into());
    let tail = Within::new(&subsets.magnitudes, &subsets.bound).certified(magnitudes.len()).unwrap();
    let certified = [tail.below, tail.up_to].map(|it| (it.p, it.p * it.relative_error));
    let hits = sampled::draw(&subsets.magnitudes, &subsets.bound);
    let drawn = [hits.below, hits.up_to].map(|hits| {
        let share = f64::from(hits) / f64::from(sampled::DRAWS);
        (share, 6.0 * (share * (1.0 - share) / f64::from(sampled::DRAWS)).sqrt() + 1e-5)
    });
    [certified, drawn]
}

#[test]
fn under_the_null_no_p_is_too_small_too_often() {
    let alike: [&[i64]; 4] =
        [&[1, 1, 1, 1, 1, 1], &[1, 2, 3, 4, 5, 6, 7], &[1, 1, 2, 3, 5, 8, 13, 0], &[9, 1, 1, 1, 1]];
    for magnitudes in alike {
        let patterns = 0..1u32 << magnitudes.len();
        let tests = patterns.map(|pattern| {
            let signed = magnitudes.iter().enumerate().map(|(i, &it)| if pattern >> i & 1 == 1 { -it } else { it });
            sign_flip_test(&signed.map(|it| Exact::from_integer(it.into())).collect::<Vec<_>>())
        });
        let ps: Vec<[Exact; 3]> = tests.map(|test| [test.p, test.p_harm, test.p_gain].map(exact)).collect();
        for side in 0..3 {
            for level in ps.iter().map(|p| &p[side]) {
                let rejected = ps.iter().filter(|p| p[side] <= *level).count();
                assert!(Exact::new(rejected.into(), ps.len().into()) <= *level, "{magnitudes:?} {side}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 5_000)))]

    #[test]
    fn p_is_the_share_of_patterns_at_least_as_extreme(differences in differences(0..=12)) {
        let test = sign_flip_test(&differences);
        prop_assert_eq!([test.p, test.p_harm, test.p_gain].map(exact), by_enumeration(&differences));
    }

    #[test]
    fn p_is_the_same_in_any_order_with_zeros_and_scaled_and_its_sides_are_swapped_mirrored(
        (differences, shuffled) in differences(0..=30).prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle())),
        scale in 1..1_000i64,
        zeros in 0..4usize,
    ) {
        let scale = Exact::new((-scale).into(), 7.into());
        let mut other: Vec<Exact> = shuffled.into_iter().map(|difference| difference * &scale).collect();
        other.extend(vec![Exact::zero(); zeros]);
        let (test, other) = (sign_flip_test(&differences), sign_flip_test(&other));
        prop_assert_eq!((test.nonzero, test.p), (other.nonzero, other.p));
        prop_assert_eq!((test.p_harm, test.p_gain), (other.p_gain, other.p_harm));
    }

    #[test]
    fn a_cluster_is_its_sum(differences in prop::collection::vec(differences(0..=4), 0..8)) {
        let sums: Vec<Exact> = differences.iter().map(|cluster| cluster.iter().sum()).collect();
        prop_assert_eq!(cluster_sign_flip_test(&differences), sign_flip_test(&sums));
    }

    #[test]
    fn both_ways_of_counting_agree(
        mut magnitudes in prop_oneof![
            prop::collection::vec(1..200usize, 0..20),
            prop::collection::vec(1..6usize, 0..150),
        ],
        percent in 0..=100usize,
    ) {
        magnitudes.sort_unstable();
        let greatest = magnitudes.last().copied().unwrap_or(0);
        let bound = BigUint::from(greatest.max(magnitudes.iter().sum::<usize>() * percent / 100));
        let magnitudes: Vec<BigUint> = magnitudes.into_iter().map(BigUint::from).collect();
        let dense = dense::Plan::new(&magnitudes, &bound).map(|plan| plan.count());
        prop_assert!(dense.is_some());
        prop_assert_eq!(dense, halves::Plan::new(&magnitudes, &bound).count());
    }

    #[test]
    fn doubles_are_as_near_as_they_say(
        magnitudes in prop_oneof![prop::collection::vec(1..200usize, 1..40), prop::collection::vec(1..9usize, 1..1_500)],
        percent in 0..=50usize,
    ) {
        let bound = magnitudes.iter().sum::<usize>() * percent / 100;
        let subsets = Subsets::new(magnitudes.iter().map(|&it| it.into()).collect(), bound.into());
        let within = Within::new(&subsets.magnitudes, &subsets.bound);
        let Ways { below, up_to } = within.count().unwrap();
        let tail = within.certified(magnitudes.len()).unwrap();
        for (rounded, count) in [(tail.below, below), (tail.up_to, up_to)] {
            let share = share_of_patterns(count, magnitudes.len());
            match PValue::certified(rounded) {
                PValue::Certified { p, relative_error } => {
                    let [p, error] = [p, relative_error].map(|double| Exact::from_float(double).unwrap());
                    prop_assert!(num_traits::abs(&share - &p) <= &p * error, "{:?} {}", rounded, share);
                    prop_assert!(relative_error < 1e-12);
                }
                below => prop_assert!(share < below.upper()),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(8, 200)))]

    #[test]
    fn every_way_says_the_same(magnitudes in prop::collection::vec(1..50usize, 1..14), percent in 0..50usize) {
        let bound = magnitudes.iter().sum::<usize>() * percent / 100;
        let patterns = 1usize << magnitudes.len();
        let sums = (0..patterns).map(|pattern| {
            magnitudes.iter().enumerate().filter(|(i, _)| pattern >> i & 1 == 1).map(|(_, it)| it).sum::<usize>()
        });
        let [below, up_to] = sums.fold([0, 0], |[below, up_to], sum| {
            [below + usize::from(sum < bound), up_to + usize::from(sum <= bound)]
        });
        for way in by_other_ways(&magnitudes, bound) {
            for ((share, off), count) in way.into_iter().zip([below, up_to]) {
                prop_assert!((share - count as f64 / patterns as f64).abs() <= off, "{} {}", share, count);
            }
        }
    }
}

//! The exact test of two rates.

use num_bigint::{BigInt, BigUint};
use num_traits::Zero;

use crate::binomial::binomial;
use crate::rational::Exact;

/// Tests whether two groups failed at the same rate; each is given as how many failed, of how many.
///
/// With the failures of both together given, the count of the first group is hypergeometric if the groups are alike.
/// `p` is the probability of all counts that are no likelier than the observed one: two-sided, exact, and 1 where
/// nothing or everything failed, or where a group is empty. The work is linear in the failures or in the successes,
/// whichever are fewer, with numbers of about as many digits.
///
/// ```
/// use retrace_stats::exact_rates_test;
///
/// // The lady who tasted tea: she called 3 of 4 cups right, and 1 of the 4 others by the same name.
/// assert_eq!(exact_rates_test((3, 4), (1, 4)), "17/35".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// When a group has more failures than members.
///
/// # Source
///
/// Fisher 1935, *The Design of Experiments*, chapter II (the test); Freeman & Halton 1951, *Note on an exact treatment
/// of contingency, goodness of fit and other problems of significance* (the two-sided sum).
pub fn exact_rates_test(a: (usize, usize), b: (usize, usize)) -> Exact {
    assert!(a.0 <= a.1 && b.0 <= b.1, "a group has at most as many failures as members");
    let (less, more) = if a.1 <= b.1 { (a, b) } else { (b, a) };
    let failed = less.0 + more.0;
    let succeeded = less.1 + more.1 - failed;
    // Neither the names of the groups nor which outcome is called a failure matters.
    let table = Table { less: less.1, more: more.1, marked: failed.min(succeeded) };
    let observed = if failed <= succeeded { less.0 } else { less.1 - less.0 };
    let observed = table.weights().nth(observed).expect("no group has more marks than there are");
    let mut all = BigUint::zero();
    let mut extreme = BigUint::zero();
    for weight in table.weights() {
        if weight <= observed {
            extreme += &weight;
        }
        all += weight;
    }
    Exact::new(BigInt::from(extreme), BigInt::from(all))
}

/// Two groups, the smaller one first, and how many members of both together are marked: at most half of them, and so no
/// more than the larger group has.
struct Table {
    less: usize,
    more: usize,
    marked: usize,
}

impl Table {
    /// In how many ways 0, 1, 2, … of the marks fall into the smaller group.
    fn weights(&self) -> impl Iterator<Item = BigUint> {
        let &Self { less, more, marked } = self;
        let mut next = Some(binomial(more, marked));
        (0..=marked.min(less)).map_while(move |x| {
            let weight = next.take()?;
            if x < marked.min(less) {
                let fewer = more - marked + x + 1;
                next = Some(&weight * (less - x) / (x + 1) * (marked - x) / fewer);
            }
            Some(weight)
        })
    }
}

#[cfg(test)]
mod tests {
    use num_traits::One;
    use proptest::prelude::*;

    use super::*;

    /// Of all ways to mark as many of the members, the share whose count in the first group is no likelier.
    fn by_enumeration(a: (usize, usize), b: (usize, usize)) -> Exact {
        let members = a.1 + b.1;
        let mut ways = vec![0_u32; a.1 + 1];
        for marks in (0_u32..1 << members).filter(|marks| marks.count_ones() as usize == a.0 + b.0) {
            ways[(marks & ((1 << a.1) - 1)).count_ones() as usize] += 1;
        }
        let extreme: u32 = ways.iter().filter(|&&count| count <= ways[a.0]).sum();
        Exact::new(extreme.into(), ways.iter().sum::<u32>().into())
    }

    #[test]
    fn tables_of_the_literature() {
        let check = |a, b, p: &str| assert_eq!(exact_rates_test(a, b), p.parse().unwrap(), "{a:?} {b:?}");
        // Fisher's tea: all cups right is 1 of 70 on one side, and as much on the other.
        check((4, 4), (0, 4), "1/35");
        check((3, 4), (1, 4), "17/35");
        // Fisher's convicts: 10 of 13 one-egg twins were convicted too, and 2 of 17 two-egg ones. R gives 0.0005367.
        check((10, 13), (2, 17), "3571/6653325");
    }

    #[test]
    fn without_a_choice_p_is_one() {
        for (a, b) in [((0, 0), (0, 0)), ((0, 5), (0, 7)), ((5, 5), (7, 7)), ((0, 0), (3, 9)), ((2, 4), (0, 0))] {
            assert_eq!(exact_rates_test(a, b), Exact::one(), "{a:?} {b:?}");
        }
    }

    #[test]
    fn tens_of_thousands_are_no_burden() {
        let one_in_twenty = Exact::new(1.into(), 20.into());
        assert!(exact_rates_test((4, 30_000), (0, 30_000)) > one_in_twenty);
        assert!(exact_rates_test((5_300, 10_000), (5_000, 10_000)) < one_in_twenty);
        assert!(exact_rates_test((5_100, 10_000), (5_000, 10_000)) > one_in_twenty);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 5_000)))]

        #[test]
        fn p_is_the_share_of_labels_no_likelier(
            (a, b) in (0..=7_usize, 0..=7_usize).prop_flat_map(|(m, n)| ((0..=m, Just(m)), (0..=n, Just(n))))
        ) {
            prop_assert_eq!(exact_rates_test(a, b), by_enumeration(a, b));
        }

        #[test]
        fn neither_the_order_of_groups_nor_the_name_of_an_outcome_matters(
            (a, b) in (0..=90_usize, 0..=90_usize).prop_flat_map(|(m, n)| ((0..=m, Just(m)), (0..=n, Just(n))))
        ) {
            let p = exact_rates_test(a, b);
            prop_assert_eq!(&exact_rates_test(b, a), &p);
            prop_assert_eq!(&exact_rates_test((a.1 - a.0, a.1), (b.1 - b.0, b.1)), &p);
            prop_assert!(p > Exact::zero() && p <= Exact::one());
        }
    }
}

//! Exact numbers as a reader sees them, rounded once.

use num_traits::{Signed, ToPrimitive, Zero};
use retrace_stats::Exact;

/// How many decimals a count of up to `horizon` actions is given where there is room.
pub(crate) fn most_decimals(horizon: usize) -> usize {
    if horizon < 10 { 3 } else { 2 }
}

/// Without a sign: `0.833`.
pub(crate) fn plain(value: &Exact, decimals: usize) -> String {
    let scaled = (value.abs() * Exact::from_integer(10_u64.pow(decimals as u32).into())).round().to_integer();
    let mut digits = format!("{scaled:0>width$}", width = decimals + 1);
    if decimals > 0 {
        digits.insert(digits.len() - decimals, '.');
    }
    digits
}

/// With a sign, `+0.833`, save an exact zero, ` 0.000`.
pub(crate) fn signed(value: &Exact, decimals: usize) -> String {
    let sign = match value {
        value if value.is_zero() => ' ',
        value if value.is_negative() => '-',
        _ => '+',
    };
    format!("{sign}{}", plain(value, decimals))
}

/// A p-value: `0.062`, or `<0.001`.
pub(crate) fn p_value(p: &Exact) -> String {
    if *p < Exact::new(1.into(), 1000.into()) { "<0.001".to_owned() } else { plain(p, 3) }
}

/// A share: `31%`, `<1%`, `104%`, and from 100 times on `>99x`.
pub(crate) fn percent(share: &Exact) -> String {
    let percent = share * Exact::from_integer(100.into());
    if percent.is_positive() && percent < Exact::from_integer(1.into()) {
        return "<1%".to_owned();
    }
    // A share that is not all, or not more than all, must not read as 100%.
    let rounded = match percent.round().to_integer().to_u64() {
        Some(100) if *share < Exact::from_integer(1.into()) => 99,
        Some(100) if *share > Exact::from_integer(1.into()) => 101,
        Some(rounded) => rounded,
        None => u64::MAX,
    };
    if rounded < 10_000 { format!("{rounded}%") } else { ">99x".to_owned() }
}

/// A share of counts; nothing of nothing is none.
pub(crate) fn percent_of(part: usize, whole: usize) -> String {
    percent(&Exact::new(part.into(), whole.max(1).into()))
}

/// Digits in groups of three: `12,345`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 boundary`, `2 boundaries`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Exact {
        text.parse().unwrap()
    }

    #[test]
    fn a_delta_has_a_sign_unless_it_is_zero() {
        for (value, expected) in [("5/6", "+0.833"), ("-1/3", "-0.333"), ("0", " 0.000"), ("1/9999", "+0.000")] {
            assert_eq!(signed(&exact(value), 3), expected);
        }
        assert_eq!(signed(&exact("-25/2"), 0), "-13");
        assert_eq!(signed(&exact("10"), most_decimals(10)), "+10.00");
    }

    #[test]
    fn halves_are_rounded_away_from_zero_and_not_by_a_double() {
        assert_eq!(plain(&exact("1/2000"), 3), "0.001");
        assert_eq!(plain(&exact("1001/2000"), 3), "0.501");
    }

    #[test]
    fn a_small_p_is_not_rounded_to_nothing() {
        for (p, expected) in [("1", "1.000"), ("1/16", "0.063"), ("1/1000", "0.001"), ("1/1001", "<0.001")] {
            assert_eq!(p_value(&exact(p)), expected);
        }
    }

    #[test]
    fn a_share_that_is_not_all_is_not_said_to_be() {
        let shares = [("0", "0%"), ("1/999", "<1%"), ("999/1000", "99%"), ("1", "100%"), ("1001/1000", "101%")];
        for (share, expected) in shares.into_iter().chain([("13/40", "33%"), ("99", "9900%"), ("100", ">99x")]) {
            assert_eq!(percent(&exact(share)), expected);
        }
        assert_eq!(percent_of(0, 0), "0%");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "boundary", "boundaries"), "1 boundary");
    }
}

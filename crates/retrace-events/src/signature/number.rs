//! Numbers: one text for all spellings of one value.

use std::borrow::Cow;

use serde_json::Number;

/// The canonical text of a JSON number.
///
/// An integer stays digit for digit, with `-0` as `0`. Any other number is the shortest decimal that reads back to the
/// same double, or its exact value `d.ddde…` where it is too large for one.
pub(super) fn canonical(token: &str) -> Cow<'_, str> {
    if is_integer(token) {
        return Cow::Borrowed(if token == "-0" { "0" } else { token });
    }
    Cow::Owned(canonical_decimal(token))
}

/// Whether a JSON number has the same value as another: exactly, where both are integers that serde_json holds, and as
/// doubles otherwise. So `1`, `1.0` and `1e0` are equal.
pub(super) fn equal(token: &str, number: &Number) -> bool {
    match (token.parse::<i128>(), number.as_i128()) {
        (Ok(one), Some(other)) => one == other,
        _ => token.parse::<f64>().ok() == number.as_f64(),
    }
}

fn is_integer(token: &str) -> bool {
    !token.contains(['.', 'e', 'E'])
}

fn canonical_decimal(token: &str) -> String {
    let (sign, unsigned) = split_sign(token);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    let leading_zeros = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    let Some((first, others)) = significant.split_at_checked(1) else {
        return format!("{sign}0.0");
    };
    // The standard parser is asked about this text, never about the token: it stops counting a long exponent, which the
    // zeros of the token might make up for.
    let exponent = shifted(exponent, whole.len() as i64 - 1 - leading_zeros as i64);
    let point = if others.is_empty() { "" } else { "." };
    let scientific = format!("{sign}{first}{point}{others}e{exponent}");
    match scientific.parse::<f64>() {
        Ok(double) if double.is_finite() => shortest(double),
        _ => scientific,
    }
}

/// The sum of an exponent as written, of any length, and `shift`. Where a double cannot tell, far below zero, it is the
/// exponent alone.
fn shifted(exponent: &str, shift: i64) -> String {
    if let Some(sum) = exponent.parse::<i64>().ok().and_then(|exponent| exponent.checked_add(shift)) {
        return sum.to_string();
    }
    if exponent.starts_with('-') {
        return exponent.to_owned();
    }
    let mut carry = shift;
    let mut backwards = Vec::new();
    for digit in exponent.trim_start_matches('+').bytes().rev() {
        let sum = i64::from(digit - b'0') + carry;
        backwards.push(sum.rem_euclid(10).to_string());
        carry = sum.div_euclid(10);
    }
    backwards.push(carry.to_string());
    let sum: String = backwards.into_iter().rev().collect();
    sum.trim_start_matches('0').to_owned()
}

/// The shortest decimal that reads back to `double`, and of several the nearest, spelt as Python spells it: with an
/// exponent below 1e-4 and from 1e16 on, signed and of at least two digits.
fn shortest(double: f64) -> String {
    let some = format!("{double:e}");
    let n_digits = some.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    // Of two that are equally near, the standard library promises neither; rounding takes the even one.
    let rounded = format!("{double:.*e}", n_digits - 1);
    let scientific = if rounded.parse() == Ok(double) { rounded } else { some };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, digits) = split_sign(mantissa);
    let digits = digits.replace('.', "");
    match exponent.parse::<isize>() {
        Ok(exponent @ -4..0) => {
            let zeros = "0".repeat(exponent.unsigned_abs() - 1);
            format!("{sign}0.{zeros}{digits}")
        }
        Ok(exponent @ 0..16) => {
            let n_whole = exponent.unsigned_abs() + 1;
            let padded = format!("{digits:0<width$}", width = n_whole + 1);
            let (whole, fraction) = padded.split_at(n_whole);
            format!("{sign}{whole}.{fraction}")
        }
        Ok(exponent) => format!("{mantissa}e{exponent:+03}"),
        Err(_) => scientific,
    }
}

fn split_sign(token: &str) -> (&str, &str) {
    match token.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", token),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(tokens: &[&str], text: &str) {
        for token in tokens {
            assert_eq!(canonical(token), text, "{token}");
        }
    }

    #[test]
    fn a_double_is_spelt_as_python_spells_it() {
        check(&["123.45600", "1.23456e2", "12345.6E-2"], "123.456");
        check(&["9999999999999998.0"], "9999999999999998.0");
        check(&["10000000000000000.0", "1E16"], "1e+16");
        check(&["0.00010", "1e-4"], "0.0001");
        check(&["0.000012"], "1.2e-05");
        check(&["0.00012"], "0.00012");
        check(&["2251799813685249.5"], "2251799813685249.5");
        check(&["-1.5e-7"], "-1.5e-07");
        check(&["2.2250738585072014e-308"], "2.2250738585072014e-308");
        check(&["-0e5", "-0.000", "-1e-9999999999999999999999"], "-0.0");
    }

    #[test]
    fn of_two_shortest_decimals_the_nearest_and_then_the_even_one_is_taken() {
        check(&["215527896431351.625", "215527896431351.63"], "215527896431351.62");
        check(&["-981862108079492.25"], "-981862108079492.2");
        check(&["5.684341886080802e-14"], "5.684341886080802e-14");
    }

    #[test]
    fn a_number_that_no_double_holds_is_kept_exactly() {
        check(&["1.5e400", "15e399", "0.0150e+0402", "1500.0e397"], "1.5e400");
        check(&["1.8e308", "180E306"], "1.8e308");
        check(&["1.7976931348623158e308"], "1.7976931348623157e+308");
        check(&["-1.00000000000000000001e400"], "-1.00000000000000000001e400");
    }

    #[test]
    fn an_exponent_of_any_length_is_added_up() {
        let large = "1".repeat(40);
        let nines = "9".repeat(40);
        check(&[&format!("1e{large}"), &format!("0.1e+00{}2", "1".repeat(39))], &format!("1e{large}"));
        check(&[&format!("10e{nines}"), &format!("0.1e1{}1", "0".repeat(39))], &format!("1e1{}", "0".repeat(40)));
        check(&[&format!("0.1e1{}", "0".repeat(40))], &format!("1e{nines}"));
        check(&["10e9223372036854775807", "0.1e9223372036854775809"], "1e9223372036854775808");
    }

    #[test]
    fn zeros_and_a_long_exponent_that_make_up_for_each_other_are_a_plain_number() {
        let zeros = 1_000_000;
        check(&[&format!("0.{}25e{}", "0".repeat(zeros), zeros + 1)], "2.5");
        check(&[&format!("25{}e-{}", "0".repeat(zeros), zeros + 1)], "2.5");
    }

    #[test]
    fn equal_numbers_may_be_spelt_otherwise() {
        let equal_to = |number: &str, tokens: &[&str]| -> Vec<bool> {
            let number: Number = serde_json::from_str(number).unwrap();
            tokens.iter().map(|token| equal(&canonical(token), &number)).collect()
        };
        assert_eq!(equal_to("1", &["1", "1.0", "1e0", "2", "1.5"]), [true, true, true, false, false]);
        assert_eq!(equal_to("0.1", &["0.1", "0.10", "1e-1", "0.2"]), [true, true, true, false]);
        assert_eq!(equal_to("9007199254740993", &["9007199254740993", "9007199254740992"]), [true, false]);
        assert_eq!(equal_to("0", &["0", "-0", "-0.0", "1e400"]), [true, true, true, false]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 10_000)))]

        #[test]
        fn a_canonical_number_reads_back_to_the_same_double(double in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL) {
            for token in [format!("{double:e}"), format!("{double:.30e}")] {
                let text = canonical(&token);
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), double.to_bits());
                prop_assert_eq!(canonical(&text), &*text);
            }
        }

        #[test]
        fn moving_the_point_of_a_large_number_does_not_change_it(
            digits in "[1-9][0-9]{0,20}", exponent in 400_u64.., places in 0_usize..20,
        ) {
            let exponent = u128::from(exponent);
            let places_left = format!(
                "0.{}{digits}e{}",
                "0".repeat(places),
                exponent + places as u128
            );
            let text = format!("0.{digits}e{exponent}");
            prop_assert_eq!(canonical(&places_left), canonical(&text));
        }
    }
}

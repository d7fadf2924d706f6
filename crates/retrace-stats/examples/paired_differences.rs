//! Two ways to ask whether twelve differences lean to one side, and how far.

#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::error::Error;

use retrace_stats::{Level, bootstrap_mean, exact_difference, exact_sign_test, median, nearest_double, sign_flip_test};

fn main() -> Result<(), Box<dyn Error>> {
    // Mean POST minus mean PRE at twelve boundaries, as a program without fractions printed them.
    let printed = [1.0, 1.0, 7.0 / 3.0, 7.0 / 3.0, 4.0, 0.0, 0.0, -1.0 / 3.0, 0.0, 0.0, 0.25, 0.0];
    let differences = printed.into_iter().map(exact_difference).collect::<Result<Vec<_>, _>>()?;

    let bootstrap = bootstrap_mean(&differences, 10_000, Level::PERCENT_95, 7)?;
    let interval = &bootstrap.interval;
    let zero = if interval.excludes_zero() { "without" } else { "with" };
    println!("mean {} in [{}, {}] at {}, {zero} zero", bootstrap.mean, interval.low, interval.high, interval.level);
    if let Some(median) = median(&differences) {
        println!("median {median}");
    }

    let flips = sign_flip_test(&differences);
    println!("sign flips of {} differences: p = {:.4} ({})", flips.nonzero, flips.p.to_f64(), flips.p.method());
    let signs = exact_sign_test(&differences);
    println!("{} up, {} down: p = {} = {:.4}", signs.positive, signs.negative, signs.p, nearest_double(&signs.p));
    Ok(())
}

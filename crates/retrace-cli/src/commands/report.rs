//! `retrace report`: a run judged again from its journal, without a model, a key or an environment.

use anyhow::Result;

use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ReportArgs) -> Result<Exit> {
    let run = output::read_run(&args.run)?;
    output::report_run(&run, &args.judging, &args.output)
}

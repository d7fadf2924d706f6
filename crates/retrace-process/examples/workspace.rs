//! Runs a shell in a copy of this crate's folder, has it do damage there, and shows that nothing of it is left.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use retrace_process::{Process, Program, Workspace, settle};
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = Workspace::copy(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let path = workspace.path().to_owned();
    let script = "rm -r src && ls; sleep 1000 & echo oops >&2; exit 3";
    let mut shell = Process::spawn(&Program::new("sh").args(["-c", script]).folder(&path)).await?;
    shell.keep(workspace);

    let mut listing = String::new();
    let (stdin, mut stdout) = shell.take_pipes().ok_or("the pipes were taken")?;
    stdout.read_to_string(&mut listing).await?;
    println!("in the copy: {}", listing.split_whitespace().collect::<Vec<_>>().join(" "));
    println!("afterwards: {}", shell.failure("answered nothing").await);

    drop((stdin, shell));
    settle();
    println!("the copy is {}", if path.exists() { "still there" } else { "gone" });
    Ok(())
}

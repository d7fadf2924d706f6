//! The `retrace` program.

fn main() -> std::process::ExitCode {
    retrace_cli::main()
}

//! The program that the tests run: `retrace`, built for them.

fn main() -> std::process::ExitCode {
    retrace_cli::main()
}

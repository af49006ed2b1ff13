//! The `irikey` command; everything it does is in `irikey::cli`.

fn main() -> std::process::ExitCode {
    irikey::cli::main()
}

//! The `irikey` command; everything it does is in `irikey::cli`.

#[global_allocator]
static ALLOCATOR: irikey::process::CheckedAllocator = irikey::process::CheckedAllocator;

fn main() -> std::process::ExitCode {
    irikey::cli::main()
}

//! The `irikey` command; everything it does is in `irikey::cli`.

#[global_allocator]
static ALLOCATOR: irikey::process::CheckedAllocator = irikey::process::CheckedAllocator;

/// The loader calls this function before the runtime starts.
#[cfg(unix)]
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_RUNTIME: extern "C" fn() = irikey::process::reserve_standard_handles;

fn main() -> std::process::ExitCode {
    irikey::cli::main()
}

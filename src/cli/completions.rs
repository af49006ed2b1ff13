//! `completions`: scripts for shells that complete commands, flags and their values.
//!
//! The crate clap_complete writes the scripts. It completes a value as a whole, so of a list only the first item: the flags that
//! take lists of names call a function of the script instead, which completes the last item.

use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;

use super::error::CommandError;
use super::terminal::print;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  irikey completions bash > ~/.local/share/bash-completion/completions/irikey
  irikey completions zsh > ~/.zfunc/_irikey
  irikey completions fish > ~/.config/fish/completions/irikey.fish";

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = clap::value_parser!(Shell))]
    shell: Shell,
}

/// The value name of flags that take lists, whose items are separated by commas. A `+` or `-` may precede an item.
const LIST: &str = "LIST";

/// Completes the last item of the list `$1` with the words of `$2`.
const BASH_LIST: &str = r#"_irikey_list() {
    local item="${1##*,}"
    item="${item#[+-]}"
    compgen -P "${1%"${item}"}" -W "$2" -- "${item}"
}

"#;

/// Completes the last item of a list with the arguments.
const ZSH_LIST: &str = r#"_irikey_list() {
    compset -P '*,'
    compset -P '[+-]'
    compadd -q -S , -- "$@"
}

"#;

/// Prints the current list with its last item replaced by each of the arguments.
const FISH_LIST: &str = r#"function __fish_irikey_list
    set -l list (commandline -ct | string replace -r -- '^--[^=]*=' '')
    set -l start (string replace -rf -- '^(.*,[+-]?|[+-]).*$' '$1' "$list")
    printf '%s\n' "$start"$argv
end

"#;

pub(crate) fn run_completions(args: &CompletionsArgs, command: Command) -> Result<u8, CommandError> {
    let (mut command, mut script) = (with_value_hints(command), Vec::new());
    clap_complete::generate(args.shell, &mut command, "irikey", &mut script);
    Ok(print(&with_lists(args.shell, &command, &String::from_utf8_lossy(&script))))
}

/// Tells shells which values are directories, and which are not paths. Flags whose values are paths have the hint for files.
/// Bash puts no space after values that are not paths, so that lists can be continued; other names are whole values.
fn with_value_hints(command: Command) -> Command {
    let with_hint = |flag: Arg| {
        let value_name = flag.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
        match (&*value_name, flag.get_value_hint()) {
            ("DIR", _) => flag.value_hint(ValueHint::DirPath),
            // These begin with a name, or may be directories.
            ("FORMAT=FILE" | "PREFIX" | "HOW", _) => flag,
            (name, ValueHint::Unknown) if flag.get_action().takes_values() => {
                let is_open = name == LIST || flag.get_possible_values().is_empty();
                if is_open { flag.value_hint(ValueHint::Other) } else { flag }
            }
            _ => flag,
        }
    };
    command.mut_args(with_hint).mut_subcommands(with_value_hints)
}

/// Replaces the completion of lists of names in a script by that of their last item.
fn with_lists(shell: Shell, command: &Command, script: &str) -> String {
    let (function, head_len) = match shell {
        Shell::Bash => (BASH_LIST, 0),
        // The first line names the command.
        Shell::Zsh => (ZSH_LIST, script.find('\n').map_or(0, |at| at + 1)),
        Shell::Fish => (FISH_LIST, 0),
        _ => return script.to_string(),
    };
    let (head, rest) = script.split_at(head_len);
    let completed = lists_of_names(command).iter().fold(rest.to_string(), |script, names| {
        let [of_value, of_list] = completion_of(names, shell);
        script.replace(&of_value, &of_list)
    });
    format!("{head}{function}{completed}")
}

/// How scripts of clap_complete complete one of these names, and how ours complete a list of them.
fn completion_of(names: &[String], shell: Shell) -> [String; 2] {
    let words = names.join(" ");
    match shell {
        Shell::Zsh => [format!(":{LIST}:({words})"), format!(":{LIST}: _irikey_list {words}")],
        Shell::Fish => {
            let lines: Vec<_> = names.iter().map(|name| format!("{name}\\t''")).collect();
            [format!("-a \"{}\"", lines.join("\n")), format!("-a \"(__fish_irikey_list {words})\"")]
        }
        _ => [format!("compgen -W \"{words}\" -- \"${{cur}}\""), format!("_irikey_list \"${{cur}}\" \"{words}\"")],
    }
}

/// The names that each flag with a list takes, of this command and its subcommands.
fn lists_of_names(command: &Command) -> Vec<Vec<String>> {
    let is_list = |flag: &&Arg| flag.get_value_names().is_some_and(|names| names.iter().any(|name| name == LIST));
    let names = |flag: &Arg| flag.get_possible_values().iter().map(|value| value.get_name().to_string()).collect();
    let own = command.get_arguments().filter(is_list).map(names).filter(|names: &Vec<String>| !names.is_empty());
    own.chain(command.get_subcommands().flat_map(lists_of_names)).collect()
}

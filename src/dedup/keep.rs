//! Which row represents those that share its key: [`Keep`]. Every policy is a total order, whose last word is the order
//! of the input, so that the representative depends on the input alone.

/// Which of the rows of one key is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first of the input. The only one that can be told as rows come.
    #[default]
    First,
    /// The last of the input.
    Last,
}

impl Keep {
    /// Every policy.
    pub const ALL: [Keep; 2] = [Keep::First, Keep::Last];

    /// The name in `--keep`.
    pub const fn name(self) -> &'static str {
        match self {
            Keep::First => "first",
            Keep::Last => "last",
        }
    }
}

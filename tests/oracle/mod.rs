//! The oracle: a literal transcription of the algorithms of the RFCs. The tests compare the library with it.
//!
//! It shares no code with the library, uses the names and step numbers of the RFCs, and prefers clarity to speed. If the
//! RFCs leave something open, a comment at the step states the decision. The oracle does not report where a fault is or
//! which step changed the text.
//!
//! | file | specification |
//! |---|---|
//! | `grammar` | RFC 3987 section 2.2, RFC 3986 appendix A, RFC 3987 section 4.1 |
//! | `components` | RFC 3986 appendix B and section 5.3 |
//! | `dots` | RFC 3986 section 5.2.4 |
//! | `resolve` | RFC 3986 sections 5.2.2 and 5.2.3 |
//! | `mapping` | RFC 3987 sections 3.1 and 3.2 |
//! | `ladder` | RFC 3987 section 5.3 |
//! | `scheme_rules` | RFC 3987 section 5.3.3, RFC 5952, RFC 8089, RFC 8141, UTS 46 |

pub mod components;
pub mod dots;
pub mod equivalence;
pub mod grammar;
pub mod ladder;
pub mod mapping;
pub mod resolve;
pub mod scheme_rules;

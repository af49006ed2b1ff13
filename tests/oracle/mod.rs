//! The RFCs' algorithms, written down literally and slowly. In: bytes or text. Out: text or a verdict.
//!
//! This is the definition that the library is held to: it shares no line with it, keeps the RFCs' names and step
//! numbers, and prefers clarity to speed throughout. Where the RFCs leave something open, the decision stands in a
//! comment beside the step. It refuses to be fast, to report where a fault is, and to say which step changed what.
//!
//! | file | specification |
//! |---|---|
//! | `grammar` | RFC 3987 section 2.2, RFC 3986 appendix A, RFC 3987 section 4.1 |
//! | `components` | RFC 3986 appendix B and section 5.3 |
//! | `dots` | RFC 3986 section 5.2.4 |
//! | `resolve` | RFC 3986 sections 5.2.2 and 5.2.3 |
//! | `mapping` | RFC 3987 section 3.1 |
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

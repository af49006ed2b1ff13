//! Lines before the header of a table: comments, and the line with which spreadsheets state the delimiter.

use super::columns::{CsvHeader, CsvOptions, stated_delimiter};

/// Maximum number of comment lines before a header.
const MAX_COMMENTS: u64 = 100;

/// Maximum length of the comments before a header, in bytes, blank lines between them included.
const MAX_COMMENTS_LEN: usize = 1 << 20;

/// The lines before the header of a table that are not records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CsvComments {
    /// Bytes, blank lines between comments included.
    pub(crate) len: usize,
    /// Number of these lines that are not blank.
    pub(crate) count: u64,
}

impl CsvOptions {
    /// The comments in `bytes`, the beginning of a source up to the end of a line. Lines that begin with `#` are comments if
    /// the first other line names a column of URLs or a chosen column; otherwise they are records. A first line that states the
    /// delimiter is a comment. `None` if the line after the comments is not in `bytes`.
    pub(crate) fn comments(&self, bytes: &[u8]) -> Option<CsvComments> {
        if stated_delimiter(bytes).is_none() {
            return self.hash_comments(bytes);
        }
        let len = memchr::memchr(b'\n', bytes)? + 1;
        let CsvComments { len: more_len, count } = self.hash_comments(&bytes[len..])?;
        (len + more_len < bytes.len()).then_some(CsvComments { len: len + more_len, count: count + 1 })
    }

    fn hash_comments(&self, bytes: &[u8]) -> Option<CsvComments> {
        let mut comments = CsvComments::default();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let is_comment = line.starts_with(b"#");
            let is_between = is_comment || comments.count > 0 && line.trim_ascii().is_empty();
            if !is_between {
                return Some(if comments.count > 0 && self.names_column(line) {
                    comments
                } else {
                    CsvComments::default()
                });
            }
            (comments.len, comments.count) = (comments.len + line.len(), comments.count + u64::from(is_comment));
            let are_too_many = comments.count > MAX_COMMENTS || comments.len > MAX_COMMENTS_LEN;
            if are_too_many || self.header == CsvHeader::Absent {
                return Some(CsvComments::default());
            }
        }
        (comments.count == 0).then(CsvComments::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_followed_by_a_header() {
        let comments = |bytes: &str| CsvOptions::default().comments(bytes.as_bytes());
        let known = |len, count| Some(CsvComments { len, count });
        assert_eq!(comments("# a, b\r\n#\n\nid;url\n"), known(11, 2));
        assert_eq!(comments("url\n# x\n"), known(0, 0));
        assert_eq!(comments("\n# a\nurl\n"), known(0, 0));
        for records in ["# a\nhttp://a/\n", "#url,x\nhttp://a/,1\n"] {
            assert_eq!(comments(records), known(0, 0), "{records}");
        }
        for open in ["# a\n", "# a\n\n"] {
            assert_eq!(comments(open), None);
        }
        assert_eq!(comments(""), known(0, 0));
        assert_eq!(comments(&"#\n".repeat(101)), known(0, 0));
        let long = |len: usize| comments(&format!("#\n{}url\n", "\n".repeat(len - 2)));
        assert_eq!(long(MAX_COMMENTS_LEN), known(MAX_COMMENTS_LEN, 1));
        assert_eq!(long(MAX_COMMENTS_LEN + 1), known(0, 0));
        assert_eq!(comments("sep=;\r\nid;url\n"), known(7, 1));
        assert_eq!(comments("\"SEP=,\"\n# x\nid,url\n"), known(12, 2));
        assert_eq!(comments("sep=;\nhttp://a/;1\n"), known(6, 1));
        for other in ["sep=\nurl\n", "sep=\"\nurl\n", "sep=ab\nurl\n", "sep=1\nurl\n", "\nsep=;\nurl\n", "# x\nsep=;\n"]
        {
            assert_eq!(comments(other), known(0, 0), "{other:?}");
        }
        assert_eq!((comments("sep=;\n"), comments("sep=;")), (None, known(0, 0)));
        let absent = CsvOptions { header: CsvHeader::Absent, ..CsvOptions::default() };
        assert_eq!(absent.comments(b"# a\nurl\n"), known(0, 0));
        assert_eq!(absent.comments(b"sep=;\nhttp://a/;1\n"), known(6, 1));
    }
}

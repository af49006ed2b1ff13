//! Bodies of HTTP responses: removes transfer and content codings (RFC 9112 section 7.1, RFC 9110 section 8.4.1), up to a
//! limit.
//!
//! Many crawlers remove the codings and keep the header fields. So a body that does not begin as its coding demands is taken
//! as it is.

use std::borrow::Cow;
use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::detect::{Packing, packing};
use super::zstd_frames::{FRAME, MAX_DICTIONARY_LOG};
use crate::kernel::parse_digits;
use crate::process::repeat_interrupted;

/// Bytes that are decompressed at a time.
const STEP_LEN: usize = 64 << 10;

/// Maximum number of codings of a body. Bodies have one or two; a longer list is made to waste time.
const MAX_CODINGS: usize = 4;

/// A body without its codings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DecodedBody<'a> {
    /// The bytes, as far as they could be decoded.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Why the rest could not be decoded.
    pub(crate) defect: Option<BodyDefect>,
}

/// Why a body cannot be decoded, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyDefect {
    /// The decoded body is longer than this many bytes.
    #[error("the document is longer than {0} bytes; allow more with --max-document")]
    TooLong(usize),
    /// The header of the archive's record is too long, so that the body was not found.
    #[error("the header of its record is longer than {0} bytes, and was not read")]
    LongHeader(u64),
    /// Data of this coding is damaged or ends early.
    #[error("the {0} data of the body is damaged or ends early; the bytes before that point were read")]
    Damaged(&'static str),
    /// This many codings are too many.
    #[error("the body has {0} codings; at most {MAX_CODINGS} are removed")]
    TooManyCodings(usize),
    /// A coding that is not known.
    #[error("the body has the coding {0:?}, which is not supported")]
    Unknown(String),
}

impl<'a> DecodedBody<'a> {
    /// A body without a defect.
    fn whole(bytes: impl Into<Cow<'a, [u8]>>) -> DecodedBody<'a> {
        DecodedBody { bytes: bytes.into(), defect: None }
    }

    /// A body of which only these bytes can be decoded.
    fn broken(bytes: impl Into<Cow<'a, [u8]>>, defect: BodyDefect) -> DecodedBody<'a> {
        DecodedBody { bytes: bytes.into(), defect: Some(defect) }
    }
}

/// Removes the codings of a body: lists of names separated by commas, in the order in which they were applied. After a
/// defect, the remaining codings are removed from the bytes before it. A body with a coding that cannot be removed has no
/// bytes.
pub(crate) fn decode_body<'a>(
    body: &'a [u8],
    transfer_codings: &[u8],
    content_codings: &[u8],
    max_len: usize,
) -> DecodedBody<'a> {
    let mut bytes = Cow::Borrowed(body);
    let names = [transfer_codings, content_codings].into_iter().flat_map(|list| list.rsplit(|byte| *byte == b','));
    let names = names.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
    let count = names.clone().count();
    if count > MAX_CODINGS {
        return DecodedBody::broken(&[][..], BodyDefect::TooManyCodings(count));
    }
    let mut first_defect = None;
    for name in names {
        let DecodedBody { bytes: decoded, defect } = remove_coding(&bytes, &name.to_ascii_lowercase(), max_len);
        if let Cow::Owned(decoded) = decoded {
            bytes = Cow::Owned(decoded);
        }
        first_defect = first_defect.or(defect);
    }
    match bytes.len() > max_len {
        true => DecodedBody::broken(&[][..], first_defect.unwrap_or(BodyDefect::TooLong(max_len))),
        false => DecodedBody { bytes, defect: first_defect },
    }
}

/// Decompresses a body that is a gzip file, such as a compressed sitemap; another body stays as it is.
pub(crate) fn unpack_body(body: DecodedBody<'_>, max_len: usize) -> DecodedBody<'_> {
    match unpack_gzip_file(&body.bytes, max_len) {
        Some(unpacked) => DecodedBody { bytes: unpacked.bytes, defect: body.defect.or(unpacked.defect) },
        None => body,
    }
}

/// Decompresses a body that is a gzip file.
fn unpack_gzip_file(body: &[u8], max_len: usize) -> Option<DecodedBody<'static>> {
    (packing(body) == Packing::Gzip).then(|| unpack("gzip", MultiGzDecoder::new(body), max_len))
}

/// Removes one coding. The bytes are borrowed if they stay as they are.
fn remove_coding<'a>(body: &'a [u8], name: &[u8], max_len: usize) -> DecodedBody<'a> {
    match name {
        b"identity" | b"none" => DecodedBody::whole(body),
        b"chunked" => remove_chunks(body),
        b"gzip" | b"x-gzip" => unpack_gzip_file(body, max_len).unwrap_or_else(|| DecodedBody::whole(body)),
        b"zstd" if body.starts_with(&FRAME) => match zstd::stream::read::Decoder::with_buffer(body) {
            Ok(mut decoder) => {
                // The level is within the limits of the library.
                let _ = decoder.window_log_max(MAX_DICTIONARY_LOG);
                unpack("zstd", decoder, max_len)
            }
            Err(_) => DecodedBody::broken(Vec::new(), BodyDefect::Damaged("zstd")),
        },
        b"zstd" => DecodedBody::whole(body),
        b"deflate" => remove_deflate(body, max_len),
        b"br" => unchanged_if_text(body, unpack("brotli", Decompressor::new(body, STEP_LEN), max_len)),
        _ if is_text(body) => DecodedBody::whole(body),
        _ => {
            let name = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
            DecodedBody::broken(Vec::new(), BodyDefect::Unknown(name))
        }
    }
}

/// `deflate` is the zlib format; some servers send it without its header.
fn remove_deflate(body: &[u8], max_len: usize) -> DecodedBody<'_> {
    let has_header = matches!(body, [first, second, ..]
        if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0);
    if has_header {
        return inflate(body, Decompress::new(true), max_len);
    }
    unchanged_if_text(body, inflate(body, Decompress::new(false), max_len))
}

/// Inflates a body. The decoders of the crate lose the bytes of their last step if the checksum after them is wrong.
fn inflate(body: &[u8], mut inflater: Decompress, max_len: usize) -> DecodedBody<'static> {
    let mut bytes = Vec::new();
    loop {
        let before = (inflater.total_in(), inflater.total_out());
        bytes.reserve(STEP_LEN);
        let status = inflater.decompress_vec(&body[before.0 as usize..], &mut bytes, FlushDecompress::None);
        let has_advanced = (inflater.total_in(), inflater.total_out()) != before;
        match status {
            _ if bytes.len() > max_len => return DecodedBody::broken(Vec::new(), BodyDefect::TooLong(max_len)),
            Ok(Status::StreamEnd) => return DecodedBody::whole(bytes),
            Ok(_) if has_advanced => {}
            _ => return DecodedBody::broken(bytes, BodyDefect::Damaged("deflate")),
        }
    }
}

/// A body that cannot be decompressed and is text has lost its coding.
fn unchanged_if_text<'a>(body: &'a [u8], decoded: DecodedBody<'a>) -> DecodedBody<'a> {
    let is_damaged = matches!(decoded.defect, Some(BodyDefect::Damaged(_)));
    if is_damaged && is_text(body) { DecodedBody::whole(body) } else { decoded }
}

/// Whether the first bytes look like text.
fn is_text(body: &[u8]) -> bool {
    let head = &body[..body.len().min(512)];
    !head.iter().any(|byte| *byte < b' ' && !byte.is_ascii_whitespace() && *byte != 0x1b)
}

fn unpack(name: &'static str, mut decoder: impl Read, max_len: usize) -> DecodedBody<'static> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; STEP_LEN];
    loop {
        let count = match repeat_interrupted(|| decoder.read(&mut buffer)) {
            Ok(0) => return DecodedBody::whole(bytes),
            Ok(count) => count,
            Err(_) => return DecodedBody::broken(bytes, BodyDefect::Damaged(name)),
        };
        if bytes.len() + count > max_len {
            return DecodedBody::broken(Vec::new(), BodyDefect::TooLong(max_len));
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
}

/// Removes the coding `chunked`, if the body begins with a chunk.
fn remove_chunks(body: &[u8]) -> DecodedBody<'_> {
    let mut bytes = Vec::new();
    let mut rest = body;
    loop {
        let Some((len, after)) = chunk_head(rest) else {
            return match rest.len() == body.len() {
                true => DecodedBody::whole(body),
                false => DecodedBody::broken(bytes, BodyDefect::Damaged("chunked")),
            };
        };
        if len == 0 {
            return DecodedBody::whole(bytes);
        }
        let Some((chunk, after)) = after.split_at_checked(len) else {
            bytes.extend_from_slice(after);
            return DecodedBody::broken(bytes, BodyDefect::Damaged("chunked"));
        };
        bytes.extend_from_slice(chunk);
        let after = after.strip_prefix(b"\r").unwrap_or(after);
        rest = after.strip_prefix(b"\n").unwrap_or(after);
    }
}

/// The length of a chunk, and what follows the line that states it.
fn chunk_head(text: &[u8]) -> Option<(usize, &[u8])> {
    // Extensions follow the length; they are rare and short.
    let line_len = memchr::memchr(b'\n', &text[..text.len().min(4096)])?;
    let line = text[..line_len].trim_ascii_end();
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let len = parse_digits(Some(digits).filter(|digits| digits.len() <= 15)?, 16)?;
    Some((usize::try_from(len).ok()?, &text[line_len + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::test_data;
    use std::io::Write;

    const PAGE: &[u8] = b"<a href=x>text</a>";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        test_data::gzip(bytes, flate2::Compression::default())
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn chunked(bytes: &[u8]) -> Vec<u8> {
        let (a, b) = bytes.split_at(5);
        [b"5;ext=1\r\n", a, b"\r\n", format!("{:X}\r\n", b.len()).as_bytes(), b, b"\r\n0\r\nTrailer: x\r\n\r\n"]
            .concat()
    }

    /// `PAGE` as brotli, uncompressed: a window of 16 bits, one metablock of 18 bytes, an empty last one.
    fn brotli() -> Vec<u8> {
        // WBITS 0; ISLAST 0, MNIBBLES 00 (4), MLEN - 1 = 17 in 16 bits, ISUNCOMPRESSED 1, padding; then ISLAST 1,
        // ISLASTEMPTY 1.
        let head: u32 = 17 << 4 | 1 << 20;
        [&head.to_le_bytes()[..3], PAGE, &[3]].concat()
    }

    #[test]
    fn codings_are_removed() {
        let stored = [&[1, 18, 0, 237, 255][..], PAGE].concat();
        let cases: [(Vec<u8>, &str, &str); 15] = [
            (PAGE.to_vec(), "", ""),
            (chunked(PAGE), "chunked", ""),
            (gzip(PAGE), "", "gzip"),
            (gzip(PAGE), "", " X-GZip "),
            (chunked(&gzip(PAGE)), "Chunked", "gzip"),
            (chunked(&gzip(PAGE)), "gzip, chunked", ""),
            (gzip(&zlib(PAGE)), "", "deflate, gzip"),
            (zlib(PAGE), "", "deflate"),
            (stored, "", "deflate"),
            (brotli(), "", "br"),
            (zstd::encode_all(PAGE, 1).unwrap(), "", "zstd"),
            // The crawler removed the codings.
            (PAGE.to_vec(), "chunked", "gzip"),
            (PAGE.to_vec(), "", "br"),
            (PAGE.to_vec(), "", "deflate"),
            (PAGE.to_vec(), "", "deflate, utf-8, zstd"),
        ];
        for (body, transfer, content) in cases {
            let decoded = decode_body(&body, transfer.as_bytes(), content.as_bytes(), 1 << 20);
            assert_eq!((&*decoded.bytes, decoded.defect), (PAGE, None), "{transfer} {content}");
        }
        assert_eq!(unpack_gzip_file(&gzip(PAGE), 100).unwrap().bytes, PAGE);
        assert_eq!(unpack_gzip_file(PAGE, 100), None);
        // A line of a chunk has digits only.
        let signed = b"+5\r\n<a hr\r\n0\r\n\r\n";
        assert_eq!(decode_body(signed, b"chunked", b"", 100).bytes, &signed[..]);
    }

    #[test]
    fn what_cannot_be_decoded_is_a_defect() {
        let zeros = gzip(&vec![0; 1 << 20]);
        let noise = [&[0x1b, 0xff, 0, 7][..], &[0xfe; 30]].concat();
        let cases: [(&[u8], &str, &str, BodyDefect); 8] = [
            (&zeros, "", "gzip", BodyDefect::TooLong(1000)),
            (&[b'x'; 1001], "", "", BodyDefect::TooLong(1000)),
            (&gzip(PAGE)[..20], "", "gzip", BodyDefect::Damaged("gzip")),
            (&noise, "", "br", BodyDefect::Damaged("brotli")),
            (&noise, "", "deflate", BodyDefect::Damaged("deflate")),
            (b"5\r\n<a hr", "chunked", "", BodyDefect::Damaged("chunked")),
            (b"ffffffffffffff\r\n<a hr", "chunked", "", BodyDefect::Damaged("chunked")),
            (b"\x1f\x9d\x90", "", "compress", BodyDefect::Unknown("compress".to_string())),
        ];
        for (body, transfer, content, defect) in cases {
            let decoded = decode_body(body, transfer.as_bytes(), content.as_bytes(), 1000);
            assert!(decoded.bytes.is_empty() || matches!(defect, BodyDefect::Damaged(_)), "{transfer} {content}");
            assert_eq!(decoded.defect, Some(defect), "{transfer} {content}");
        }
        let many = gzip(&gzip(&gzip(&gzip(PAGE))));
        assert_eq!(decode_body(&many, b"", b"gzip, gzip, gzip, gzip", 1000), DecodedBody::whole(PAGE));
        let five = decode_body(&many, b"chunked", b"gzip, gzip, gzip, gzip", 1000);
        assert_eq!(five, DecodedBody::broken(&[][..], BodyDefect::TooManyCodings(5)));
        // The limit counts: it is not reached by what it allows.
        assert_eq!(decode_body(&gzip(&[b'x'; 1000]), b"", b"gzip", 1000).defect, None);
        assert_eq!(decode_body(&[b'x'; 1000], b"", b"", 1000).defect, None);
        assert_eq!(unpack_gzip_file(&zeros, 1000).unwrap().defect, Some(BodyDefect::TooLong(1000)));
        // The bytes before a wrong checksum were read.
        let mut wrong = zlib(PAGE);
        *wrong.last_mut().unwrap() ^= 1;
        let decoded = decode_body(&wrong, b"", b"deflate", 1000);
        assert_eq!((&*decoded.bytes, decoded.defect), (PAGE, Some(BodyDefect::Damaged("deflate"))));
        assert_eq!(decode_body(b"5\r\n<a hr\r\n9\r\nef=", b"chunked", b"", 1000).bytes, &b"<a href="[..]);
    }

    /// The bytes of a cut body are the beginning of the document, never those of an inner coding.
    #[test]
    fn all_codings_are_removed_from_a_cut_body() {
        type Encode = fn(&[u8]) -> Vec<u8>;
        let page: Vec<u8> =
            (0..30_000u32).flat_map(|i| format!("<a href={:x}>", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        let inner: [(&str, Encode); 3] =
            [("gzip", gzip), ("deflate", zlib), ("zstd", |bytes| zstd::encode_all(bytes, 1).unwrap())];
        for ((first, encode), (second, encode_again)) in inner.iter().flat_map(|first| {
            [("chunked", chunked as Encode)].into_iter().chain(inner).map(move |second| (*first, second))
        }) {
            let body = encode_again(&encode(&page));
            for cut in [20, 100, body.len() / 3, body.len() / 2, body.len() - 20] {
                let decoded = match second {
                    "chunked" => decode_body(&body[..cut], b"chunked", first.as_bytes(), 1 << 20),
                    _ => decode_body(&body[..cut], b"", format!("{first}, {second}").as_bytes(), 1 << 20),
                };
                assert_eq!(decoded.defect, Some(BodyDefect::Damaged(second)), "{first} {second} {cut}");
                assert!(page.starts_with(&decoded.bytes), "{first} {second} {cut}");
                assert!(cut + 20 < body.len() || !decoded.bytes.is_empty(), "{first} {second} {cut}");
            }
        }
        let sitemap = gzip(&page);
        let body = chunked(&sitemap);
        let cut = unpack_body(decode_body(&body[..body.len() / 2], b"chunked", b"", 1 << 20), 1 << 20);
        assert_eq!(cut.defect, Some(BodyDefect::Damaged("chunked")));
        assert!(!cut.bytes.is_empty() && page.starts_with(&cut.bytes));
    }
}

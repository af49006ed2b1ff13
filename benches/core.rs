//! Benchmarks of the core on one thread, by stage: byte classes, lines, rows (URI and key, also with the text of a SURT
//! recipe), and the literal ladder. All figures are bytes of input per second over the same lines.

mod corpus;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use irikey::canon::{Canonicalizer, Policy, RecipeColumn, Rows, Rung};
use irikey::iri::{ParseMode, normalize_to_rung};
use irikey::kernel::Bitmaps;
use irikey::key::{KeyAlgorithm, Recipe};
use irikey::record::{Records, TextDecoder, lines::Lines};

const CHUNK_LEN: usize = 256 << 10;

/// Divides `text` into chunks of whole lines.
fn chunks(text: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let near = &rest[..rest.len().min(CHUNK_LEN)];
        let end = near.iter().rposition(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
        let (chunk, after) = rest.split_at(end);
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

fn rows(policy: &Policy, chunks: &[&[u8]], rows: &mut Rows) {
    let (mut lines, mut bitmaps, mut canonicalizer) =
        (Lines::default(), Bitmaps::default(), Canonicalizer::new(policy));
    for chunk in chunks {
        let records = lines.decode(chunk, 0, &mut bitmaps);
        canonicalizer.append(&records, &bitmaps, rows);
        black_box(&rows.key);
        rows.clear();
    }
}

fn core(criterion: &mut Criterion) {
    let text = corpus::lines();
    let chunks = chunks(&text);
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(20);
    group.bench_function("bitmaps", |bencher| {
        let mut bitmaps = Bitmaps::default();
        let mut classify = |text| Records { text, ..Records::default() }.classify(&mut bitmaps);
        bencher.iter(|| chunks.iter().for_each(|chunk| classify(black_box(chunk))));
    });
    group.bench_function("lines", |bencher| {
        let (mut lines, mut bitmaps) = (Lines::default(), Bitmaps::default());
        bencher.iter(|| {
            let count = |chunk: &&[u8]| lines.decode(black_box(chunk), 0, &mut bitmaps).urls.len();
            chunks.iter().map(count).sum::<usize>()
        });
    });
    for rung in [Rung::Syntax, Rung::Scheme] {
        let policy = Policy { rung, ..Policy::default() };
        let mut scratch = Rows::default();
        group.bench_function(format!("rows_{}", rung.name()), |bencher| {
            bencher.iter(|| rows(&policy, black_box(&chunks), &mut scratch));
        });
    }
    let blake3 = Policy { algorithm: KeyAlgorithm::Blake3, ..Policy::default() };
    let mut scratch = Rows::default();
    group.bench_function("rows_scheme_blake3", |bencher| {
        bencher.iter(|| rows(&blake3, black_box(&chunks), &mut scratch));
    });
    for name in ["surt-wayback", "surt-ia"] {
        let recipe = Recipe::parse(name).expect("the name of a recipe");
        let policy = Policy { recipes: vec![RecipeColumn { column: name, recipe }], ..Policy::default() };
        let mut scratch = Rows::default();
        group.bench_function(format!("rows_scheme_{name}"), |bencher| {
            bencher.iter(|| rows(&policy, black_box(&chunks), &mut scratch));
        });
    }
    group.finish();
    ladder(criterion, &chunks[..1]);
}

/// The literal ladder, to which the single-pass normalization is equal, for comparison.
fn ladder(criterion: &mut Criterion, chunks: &[&[u8]]) {
    let mut group = criterion.benchmark_group("ladder");
    group.throughput(Throughput::Bytes(chunks.iter().map(|chunk| chunk.len() as u64).sum())).sample_size(10);
    group.bench_function("climb_scheme", |bencher| {
        bencher.iter(|| {
            let lines = chunks.iter().flat_map(|chunk| chunk.split(|&byte| byte == b'\n'));
            lines.filter_map(|line| normalize_to_rung(black_box(line), Rung::Scheme, ParseMode::Lenient).ok()).count()
        });
    });
    group.finish();
}

criterion_group!(benches, core);
criterion_main!(benches);

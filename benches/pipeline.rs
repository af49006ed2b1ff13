//! Benchmarks of the pipeline from file to file: each output format, with one thread and with all.

mod corpus;

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use irikey::batch::ColumnSet;
use irikey::canon::Policy;
use irikey::input::{Source, Sources};
use irikey::output::{self, Compression, Destination, OutputError, OutputFormat, OutputOptions};
use irikey::run::{self, Progress, RunError, RunOptions};

struct Job {
    threads: usize,
    format: OutputFormat,
    compression: Compression,
}

fn perform(job: &Job, input: &Path, out: &Path) -> Result<u64, RunError<OutputError>> {
    // The command keeps what the columns need: text has only URIs.
    let columns = match job.format {
        OutputFormat::Text => ColumnSet::named(["uri"]).expect("a column"),
        _ => ColumnSet::default(),
    };
    let policy = columns.complete_policy(Policy::default());
    let options = OutputOptions {
        format: job.format,
        compression: job.compression,
        columns,
        policy: policy.clone(),
        sources: vec!["corpus".to_string()],
    };
    let (encoder, mut output) =
        output::create(&Destination::File(out.to_path_buf()), options).map_err(RunError::Output)?;
    let sources = Sources(vec![Source::path(input.to_path_buf()).expect("the corpus is a file")]);
    let run_options = RunOptions { threads: job.threads, ..RunOptions::default() };
    let encode = |rows: &mut _, runs: &[_]| encoder.encode(rows, runs);
    let summary = run::canon(
        run::RunRequest::new(sources, &run_options, &policy, &Progress::new()),
        |group| encode(group.rows, group.runs).map(Some),
        |encoded| output.append(encoded),
    )?;
    output.finish().map_err(RunError::Output)?;
    Ok(summary.rows)
}

fn pipeline(criterion: &mut Criterion) {
    let text = corpus::lines();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (input, out) = (directory.path().join("corpus.txt"), directory.path().join("out"));
    std::fs::write(&input, &text).expect("the corpus can be written");
    let mut group = criterion.benchmark_group("pipeline");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    let none = Compression::None;
    let jobs = [
        ("text_1", Job { threads: 1, format: OutputFormat::Text, compression: none }),
        ("parquet_none_1", Job { threads: 1, format: OutputFormat::Parquet, compression: none }),
        ("parquet_zstd1_1", Job { threads: 1, format: OutputFormat::Parquet, compression: Compression::default() }),
        ("parquet_zstd1_all", Job { threads: 0, format: OutputFormat::Parquet, compression: Compression::default() }),
        ("arrow_1", Job { threads: 1, format: OutputFormat::Arrow, compression: none }),
        ("jsonl_1", Job { threads: 1, format: OutputFormat::JsonLines, compression: none }),
    ];
    for (name, job) in jobs {
        group.bench_function(name, |bencher| {
            bencher.iter(|| perform(&job, &input, &out).unwrap_or_else(|error| panic!("{error}")));
        });
    }
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);

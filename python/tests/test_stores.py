"""Objects in a store with the interface of S3 that others wrote: the server of moto, on loopback.

IRIKEY names the command, which is built with the feature `remote`.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto.server")

IRIKEY = os.environ.get("IRIKEY") or shutil.which("irikey")
SAMPLES = pathlib.Path(__file__).parents[2] / "data" / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.name.startswith(("crawl.", "urls.")))
BUCKET = "crawls"

# The least length of a part that the store accepts.
PART_LEN = 5 << 20

pytestmark = pytest.mark.skipif(IRIKEY is None, reason="IRIKEY does not name the command")


@pytest.fixture(scope="module")
def store():
    # Keys per page of a listing.
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "7"
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="KEY",
        aws_secret_access_key="SECRET",
    )
    client.create_bucket(Bucket=BUCKET)
    for name in NAMES:
        client.put_object(Bucket=BUCKET, Key=f"samples/{name}", Body=(SAMPLES / name).read_bytes())
    yield client
    server.stop()


def irikey(client, *arguments, status=0):
    environment = {"PATH": os.environ["PATH"], "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET"}
    options = ["--store-option", f"endpoint={client.meta.endpoint_url}", "--store-option", "retry_timeout=5s"]
    command = [IRIKEY, arguments[0], "-q", *options, *arguments[1:]]
    done = subprocess.run(command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout if status == 0 else done.stderr.decode()


def read(client, key):
    return client.get_object(Bucket=BUCKET, Key=key)["Body"].read()


ROWS = ["canon", "--output-format", "jsonl", "--columns", "uri,key,record,fault,flags"]


@pytest.mark.parametrize("name", NAMES)
def test_an_object_gives_the_rows_of_the_file(store, name):
    local, remote = irikey(store, *ROWS, SAMPLES / name), irikey(store, *ROWS, f"s3://{BUCKET}/samples/{name}")
    assert local == remote and local


def test_prefixes_have_many_pages(store):
    for number in range(50):
        store.put_object(Bucket=BUCKET, Key=f"many/{number:02}", Body=b"http://h/%d\n" % number)
    lines = [b"http://h/%d\n" % number for number in range(50)]
    assert irikey(store, "canon", f"s3://{BUCKET}/many/") == b"".join(lines)
    assert irikey(store, "canon", f"s3://{BUCKET}/many/[13]*") == b"".join(lines[10:20] + lines[30:40])


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.cdx.gz"])
def test_an_output_has_the_bytes_of_the_file(store, tmp_path, name):
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"http://h{number * 7919 % 60013:x}.example.org/{number:x}\n" for number in range(150_000)))
    short = tmp_path / "short.txt"
    short.write_text("http://a/\n")
    # Parts, which are completed; one request; and an object that is replaced.
    for source in [lines, short]:
        flags = ["canon", source, "--store-option", f"part_size={PART_LEN}", "--columns", "+uri"]
        flags = flags[:-2] if name.endswith(".gz") else flags
        irikey(store, *flags, "-o", tmp_path / name)
        irikey(store, *flags, "-o", f"s3://{BUCKET}/out/{name}")
        for suffix in [".cdx.gz", ".idx", ".loc"] if name.endswith(".gz") else [pathlib.Path(name).suffix]:
            assert read(store, f"out/x{suffix}") == (tmp_path / f"x{suffix}").read_bytes(), suffix
    assert "Uploads" not in store.list_multipart_uploads(Bucket=BUCKET)


def test_parts_and_manifest_are_read_again(store):
    target = f"s3://{BUCKET}/keys/"
    irikey(store, "canon", SAMPLES / "urls.txt", "-o", target, "--part-rows", "100", "--output-format", "parquet")
    keys = [entry["Key"] for entry in store.list_objects_v2(Bucket=BUCKET, Prefix="keys/")["Contents"]]
    assert keys == ["keys/_manifest.json", *(f"keys/part-{number:05}.parquet" for number in range(4))]
    rows = ["dedup", "--output-format", "csv", "--columns", "key"]
    assert irikey(store, *rows, target) == irikey(store, *rows, SAMPLES / "urls.txt")
    assert "contains files already" in irikey(store, "canon", SAMPLES / "urls.txt", "-o", target, "--part-rows", "100", status=2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"s3://{BUCKET}/none", "there is no such object"),
        (f"s3://{BUCKET}/none/", "no objects have such a name"),
        ("s3://nothing/none", "there is no such bucket"),
        ("s3://nothing/", "there is no such bucket"),
    ],
)
def test_what_does_not_exist_is_named(store, name, message):
    found = irikey(store, "canon", name, status=4)
    assert name in found and message in found

"""Signatures of S3, by the examples of AWS's own documentation, and the settings of the bucket."""

from datetime import UTC, datetime

import pytest

from fleet.core.log_bucket import LogBucket
from fleet.core.request_signature import Credentials, signed_headers

CREDENTIALS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
AT = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "signature"),
    [
        ("GET", "test.txt", b"", {"Range": "bytes=0-9"},
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "test%24file.text", b"Welcome to Amazon S3.",
         {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    ],
)  # fmt: skip
def test_it_signs_as_the_examples_of_aws_are_signed(method, path, body, headers, signature):
    signed = signed_headers(method, f"https://examplebucket.s3.amazonaws.com/{path}", body, headers, CREDENTIALS, AT)
    assert signed["Authorization"].endswith(f"Signature={signature}")


def test_no_secret_stands_in_what_is_printed_of_it():
    bucket = LogBucket("https://s3.example.com/logs", "AKIA", "hunter2")
    assert "hunter2" not in repr(bucket) + str(bucket.credentials)


@pytest.mark.parametrize(
    ("bucket", "named"),
    [
        (LogBucket("s3://logs", "a", "b"), "CONVOY_LOGS_S3 is no address"),
        (LogBucket("https://user:hunter2@s3.example.com/logs", "a", "b"), "CONVOY_LOGS_S3 is no address"),
        (LogBucket("https://s3.example.com/logs?x=1", "a", "b"), "CONVOY_LOGS_S3 is no address"),
        (LogBucket("https://s3.example.com/logs", "a", ""), "CONVOY_LOGS_S3_SECRET_KEY"),
        (LogBucket("https://s3.example.com/logs", "", "hunter2"), "CONVOY_LOGS_S3_ACCESS_KEY"),
        (LogBucket("https://s3.example.com/logs", "a", "b", ""), "CONVOY_LOGS_S3_REGION"),
    ],
)
def test_it_names_the_setting_that_makes_no_sense_and_repeats_no_secret(bucket, named):
    [fault] = bucket.faults()
    assert named in fault and "hunter2" not in fault
    assert LogBucket().faults() == [] and LogBucket("http://127.0.0.1:9000/logs/a", "a", "b").faults() == []

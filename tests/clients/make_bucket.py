"""Makes a bucket and a user who may use it, at the server named, as an operator does; prints the user's keys."""

import json
import sys

import boto3

BUCKET = "convoy-logs"
POLICY = {"Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::convoy-logs", "arn:aws:s3:::convoy-logs/*"]}

endpoint = {"endpoint_url": sys.argv[1], "region_name": "eu-central-1"}
root = {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
iam, s3 = boto3.client("iam", **endpoint, **root), boto3.client("s3", **endpoint, **root)
s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
iam.create_user(UserName="convoy")
document = json.dumps({"Version": "2012-10-17", "Statement": [POLICY]})
iam.put_user_policy(UserName="convoy", PolicyName="logs", PolicyDocument=document)
key = iam.create_access_key(UserName="convoy")["AccessKey"]
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))

#!/usr/bin/env python3
"""Stands in for curl where it is not installed: curl -s [-N] URL [-H FIELD] [-d BODY]."""

import argparse
import shutil
import sys
import urllib.error
import urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("-N", action="store_true")
parser.add_argument("-H", action="append", default=[])
parser.add_argument("-d")
parser.add_argument("url")
options = parser.parse_args()

request = urllib.request.Request(
    f"http://{options.url.removeprefix('http://')}",
    data=options.d.encode() if options.d else None,
    headers=dict(field.split(": ", 1) for field in options.H),
)
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as refusal:
    answer = refusal
shutil.copyfileobj(answer, sys.stdout.buffer)

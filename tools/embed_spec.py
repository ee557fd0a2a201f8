#!/usr/bin/env python3
"""Makes a C array of an OpenAPI document: embed_spec.py SPEC.yaml OUT.c

The document is written as compact JSON; src/server/openapi.h declares the array.
"""
import json
import pathlib
import sys

import yaml

COLUMNS = 16


def main():
    spec, out = map(pathlib.Path, sys.argv[1:3])
    data = json.dumps(yaml.safe_load(spec.read_text()), separators=(",", ":"),
                      default=str).encode()
    rows = [", ".join(f"0x{b:02x}" for b in data[i:i + COLUMNS]) + ","
            for i in range(0, len(data), COLUMNS)]
    out.write_text('#include "server/openapi.h"\n\n'
                   "const unsigned char openapi_json[] = {\n\t" + "\n\t".join(rows) + "\n};\n"
                   f"const size_t openapi_json_len = {len(data)};\n")


if __name__ == "__main__":
    main()

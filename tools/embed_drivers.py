#!/usr/bin/env python3
"""Makes C arrays of the code interpreter's drivers: embed_drivers.py OUT.c FILE...

Each file is compressed (raw DEFLATE); src/execd/code_languages.h declares the table.
"""
import pathlib
import sys
import zlib

COLUMNS = 16


def packed(data):
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    return compressor.compress(data) + compressor.flush()


def main():
    out, *files = map(pathlib.Path, sys.argv[1:])
    text = '#include "execd/code_languages.h"\n'
    rows = ""
    for i, file in enumerate(sorted(files, key=lambda f: f.name)):
        data = file.read_bytes()
        small = packed(data)
        lines = [", ".join(f"0x{b:02x}" for b in small[at:at + COLUMNS]) + ","
                 for at in range(0, len(small), COLUMNS)]
        text += f"\nstatic const unsigned char file_{i}[] = {{\n\t" + "\n\t".join(lines) + "\n};\n"
        rows += f'\t{{"{file.name}", {{(const char *)file_{i}, sizeof(file_{i})}}, {len(data)}}},\n'
    out.write_text(text + "\nconst struct code_driver_file code_driver_files[] = {\n" + rows + "\t{0},\n};\n")


if __name__ == "__main__":
    main()

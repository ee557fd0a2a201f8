#!/usr/bin/env python3
"""Boots a small Debian kernel with a unified cgroup hierarchy and runs a program of tests in it.

    guest.py [--programs DIR] [--out DIR] [--seconds N]

The machine is emulated in software: QEMU, a kernel package unpacked into --out, and a disk made of
this host's own files with our programs on it.  The tests are tests/guest/limits.py; what they print
comes over the serial line.  Exits 0 if all passed, 1 if not, 77 if it cannot be tried here.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("opensandbox-server", "opensandbox-warden", "opensandbox-image", "execd")
TOOLS = ("qemu-system-x86_64", "mke2fs", "apt-get", "apt-cache", "dpkg-deb", "dpkg", "ldd")
KERNEL = "linux-image-cloud-amd64"
# What the tests and the sandboxes in the guest find in /usr.
PACKAGES = ("bash", "dash", "coreutils", "grep", "hostname", "nftables", "iproute2",
            "util-linux")
PYTHON_WITHOUT = ("test", "idlelib", "lib2to3", "ensurepip", "pydoc_data", "tkinter", "dist-packages",
                  "config-*")
DISK_MODULES = ("virtio_pci", "virtio_blk")
MODULES = ("overlay", "veth", "nf_tables", "nft_ct", "nft_chain_nat", "nft_masq", "nft_fib_inet",
           "nft_fib_ipv4", "nft_reject_inet", "nft_limit")
DISK_MIB = 1024
MEMORY_MIB = 1024


class CannotTry(Exception):
    pass


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise CannotTry(f"{argv[0]} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


# ---- the kernel ----

def download(packages):
    depends = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", KERNEL))
    if not depends:
        raise CannotTry(f"the package lists do not name {KERNEL}")
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    shutil.chown(packages, "_apt")  # apt fetches as a user of its own
    run("apt-get", "download", "-q", depends[1], cwd=packages)


def kernel(out):
    """The directory of an unpacked kernel package, downloaded if it is not there."""
    there = out / "kernel"
    if not list(there.glob("boot/vmlinuz-*")):
        packages = out / "packages"
        try:
            download(packages)
        except CannotTry:  # the lists may be absent, or too old
            run("apt-get", "update", "-q")
            download(packages)
        fresh = out / "kernel.new"
        shutil.rmtree(fresh, ignore_errors=True)
        run("dpkg-deb", "-x", *packages.glob("*.deb"), fresh)
        shutil.rmtree(there, ignore_errors=True)
        fresh.rename(there)
        shutil.rmtree(packages)
    return there


class Modules:
    def __init__(self, folder):
        self.files = {path.name.split(".ko")[0].replace("-", "_"): path
                      for path in folder.glob("lib/modules/*/kernel/**/*.ko")}

    def ordered(self, names):
        """The files of modules, each behind those it needs; what is built in has none."""
        found = []

        def add(name):
            path = self.files.get(name.replace("-", "_"))
            if not path or path in found:
                return
            needs = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
            for other in filter(None, needs[1].decode().split(",") if needs else ()):
                add(other)
            found.append(path)

        for name in names:
            add(name)
        return found


# ---- the files ----

def write_cpio(path, files):
    """An initramfs: {name: bytes, or None for a directory}, all executable."""
    with open(path, "wb") as out:
        def entry(inode, name, mode, data):
            head = "070701" + "".join(f"{n:08x}" for n in (
                inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0))
            out.write(head.encode() + name.encode() + b"\0")
            out.write(b"\0" * (-out.tell() % 4) + data)
            out.write(b"\0" * (-out.tell() % 4))

        for inode, (name, data) in enumerate(files.items(), 1):
            entry(inode, name, 0o040755 if data is None else 0o100755, data or b"")
        entry(0, "TRAILER!!!", 0, b"")


def load_script(modules, folder):
    return "".join(f"/bin/busybox insmod {folder}/{path.name}\n" for path in modules)


def make_initramfs(path, modules):
    script = ("#!/bin/busybox sh\n"
              "/bin/busybox mount -t devtmpfs dev /dev\n" + load_script(modules, "/modules") +
              "until [ -b /dev/vda ]; do /bin/busybox usleep 10000; done\n"
              "/bin/busybox mount -t ext4 -o noatime /dev/vda /root\n"
              "/bin/busybox mount -o move /dev /root/dev\n"
              "exec /bin/busybox switch_root /root /sbin/init\n")
    files = {"dev": None, "root": None, "bin": None, "modules": None,
             "bin/busybox": pathlib.Path("/bin/busybox").read_bytes(), "init": script.encode()}
    files.update({f"modules/{m.name}": m.read_bytes() for m in modules})
    write_cpio(path, files)


def libraries(path):
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def place(root, source, seen):
    """Copies a file of the host to where it is, links as links and what they name as well."""
    source = pathlib.Path(source)
    real = pathlib.Path(os.path.realpath(source.parent)) / source.name
    if real in seen or not os.path.lexists(real):
        return
    seen.add(real)
    target = root / real.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if real.is_symlink():
        target.symlink_to(os.readlink(real))
        place(root, real.parent / os.readlink(real), seen)
    elif real.is_file():
        shutil.copy2(real, target)
        if os.access(real, os.X_OK):
            for library in libraries(real):
                place(root, library, seen)


def host_files():
    yield from ("/bin/busybox", "/usr/bin/python3", "/usr/bin/env")
    for package in PACKAGES:
        for path in run("dpkg", "-L", package).splitlines():
            if "/bin/" in path or "/sbin/" in path:
                yield path
    for path in pathlib.Path("/usr/lib").glob("python3.*/lib-dynload/*.so"):
        yield str(path)


def make_tree(root, programs, modules):
    for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "tmp", "run",
                 "etc", "var/lib", "root", "opt/guest", "opt/modules"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    seen = set()
    for path in host_files():
        place(root, path, seen)
    for folder in pathlib.Path("/usr/lib").glob("python3.*"):
        shutil.copytree(folder, root / "usr/lib" / folder.name, dirs_exist_ok=True, symlinks=True,
                        ignore=shutil.ignore_patterns(*PYTHON_WITHOUT))
    for name in PROGRAMS:
        shutil.copy2(programs / name, root / "opt/guest" / name)
        for library in libraries(programs / name):
            place(root, library, seen)
    for path in (ROOT / "tests/guest/limits.py", ROOT / "bench/sandbox_client.py"):
        shutil.copy2(path, root / "opt/guest")
    for path in modules:
        shutil.copy2(path, root / "opt/modules")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/resolv.conf").write_text("nameserver 192.0.2.53\n")
    init = root / "usr/sbin/init"
    init.unlink(missing_ok=True)
    init.write_text(
        "#!/bin/busybox sh\nexport PATH=/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8\n"
        "mount() { /bin/busybox mount \"$@\"; }\n"
        "mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /run\n"
        "mount -t cgroup2 cgroup2 /sys/fs/cgroup\n"
        "/bin/busybox mkdir -p /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm\n"
        "mount -t devpts pts /dev/pts\n"
        "/bin/busybox ip link set lo up\n" + load_script(modules, "/opt/modules") +
        "/usr/bin/python3 /opt/guest/limits.py\n"
        "/bin/busybox sync; /bin/busybox poweroff -f\n")
    init.chmod(0o755)


def make_disk(out, programs, modules):
    tree = out / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    make_tree(tree, programs, modules)
    disk = out / "disk.img"
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1", "-d", tree, disk,
        f"{DISK_MIB}M")
    shutil.rmtree(tree)
    return disk


# ---- the machine ----

def boot(out, image, disk, seconds):
    """Passes the serial line on; the exit code, by what the tests said last."""
    command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display",
               "none", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m",
               f"{MEMORY_MIB}M", "-kernel", image, "-initrd", out / "initramfs", "-append",
               "console=ttyS0 quiet panic=-1 mitigations=off", "-drive",
               f"file={disk},format=raw,if=virtio,snapshot=on", "-serial", "stdio"]
    begin = time.monotonic()
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    os.set_blocking(machine.stdout.fileno(), False)
    said = b""
    try:
        while machine.poll() is None and time.monotonic() - begin < seconds:
            more = machine.stdout.read() or b""
            said += more
            sys.stdout.write(more.decode(errors="replace").replace("\r", ""))
            sys.stdout.flush()
            time.sleep(0.1)
    finally:
        in_time = machine.poll() is not None
        machine.kill()
        machine.wait()
    rest = machine.stdout.read() or b""
    sys.stdout.write(rest.decode(errors="replace").replace("\r", ""))
    print(f"guest: {'ended' if in_time else 'stopped'} after {time.monotonic() - begin:.0f} s")
    return 0 if b"guest: all passed" in said + rest else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".cache" / "guest")
    parser.add_argument("--seconds", type=int, default=160)
    options = parser.parse_args()
    try:
        missing = [name for name in TOOLS if not shutil.which(name)]
        missing += [p for p in ("/bin/busybox", "/usr/bin/python3") if not os.path.exists(p)]
        missing += [name for name in PROGRAMS if not (options.programs / name).exists()]
        if os.geteuid() != 0:
            missing.append("root, whose files go onto the disk")
        if missing:
            raise CannotTry(f"needs {', '.join(missing)}: see tools/deps.sh guest")
        options.out.mkdir(parents=True, exist_ok=True)
        folder = kernel(options.out)
        modules = Modules(folder)
        make_initramfs(options.out / "initramfs", modules.ordered(DISK_MODULES))
        disk = make_disk(options.out, options.programs, modules.ordered(MODULES))
    except CannotTry as reason:
        print(f"guest: skipped: {reason}")
        return 77
    try:
        return boot(options.out, next(folder.glob("boot/vmlinuz-*")), disk, options.seconds)
    finally:
        disk.unlink()


if __name__ == "__main__":
    sys.exit(main())

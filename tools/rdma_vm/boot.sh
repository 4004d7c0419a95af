#!/usr/bin/env bash
# tools/rdma_vm/boot.sh [-t SECONDS] COMMAND...
# Runs a command in a virtual machine that has two RDMA devices, rxe0 and rxe1 (soft-RoCE on the two ends of a veth pair),
# and exits as the command does. The machine is Debian's kernel under qemu's software emulation; its root is this system's,
# read-only below a memory file system: what the command writes is gone afterwards. It starts in the current directory, with
# the current PATH. As root on Debian, whatever is missing is fetched by apt; a second run starts at once.
# Exit status 77: no such machine can be made here; the reason is on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=900
if [ "${1-}" = -t ]; then seconds=$2; shift 2; fi
cache=${PENSTOCK_VM_CACHE:-$here/../../build/rdma-vm}
modules="virtio_pci 9pnet_virtio 9p overlay virtio_rng veth crc32_pclmul ib_uverbs rdma_rxe"

cannot() { echo "rdma_vm: $*" >&2; exit 77; }

fetch() {
  command -v apt-get >/dev/null 2>&1 || cannot "no apt-get here to fetch qemu and a kernel with"
  [ "$(id -u)" = 0 ] || cannot "qemu and a kernel are not there yet, and only root may fetch them"
  local missing=()
  for package in qemu-system-x86 busybox-static kmod cpio libibverbs1 ibverbs-providers; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    apt-get -o DPkg::Lock::Timeout=300 update -qq
    apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
  fi
  # The kernel that linux-image-amd64 stands for today; the cloud kernel has no soft-RoCE.
  local package
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
  (cd "$cache" && apt-get -o APT::Sandbox::User=root download "$package" >/dev/null && dpkg-deb -x "$package"_*.deb kernel && rm -f "$package"_*.deb)
}

build_initrd() {
  local version root
  version=$(ls "$cache/kernel/lib/modules")
  root=$cache/initrd.d
  /sbin/depmod -b "$cache/kernel" "$version"
  rm -rf "$root"
  mkdir -p "$root"/{bin,proc,sys,dev,modules,lower,upper,merged}
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in sh mount insmod mkdir switch_root; do ln -s busybox "$root/bin/$name"; done
  for module in $modules; do
    /sbin/modprobe -d "$cache/kernel" -S "$version" --show-depends "$module" | awk '$1 == "insmod" {print $2}'
  done | awk '!seen[$0]++' | while read -r file; do
    cp "$file" "$root/modules/"
    basename "$file" >> "$root/modules/order"
  done
  install -m 755 "$here/init" "$root/init"
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$cache/initrd.gz"
  rm -rf "$root"
  cp "$cache/kernel/boot/vmlinuz-$version" "$cache/vmlinuz"
}

mkdir -p "$cache"
exec 9> "$cache/lock"
flock 9
if [ ! -e "$cache/ready" ] || [ "$here/init" -nt "$cache/ready" ] || [ "$here/boot.sh" -nt "$cache/ready" ]; then
  command -v qemu-system-x86_64 >/dev/null 2>&1 && [ -d "$cache/kernel" ] || fetch
  build_initrd
  touch "$cache/ready"
fi
flock -u 9
command -v qemu-system-x86_64 >/dev/null 2>&1 || cannot "qemu-system-x86_64 is gone"

job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
cp "$here/inside.sh" "$job/"
printf '%q ' "$@" > "$job/command"
pwd > "$job/directory"
echo "$PATH" > "$job/path"
# Emulated: nested virtualisation is seldom to be had, and does not boot this kernel everywhere it is. Without erms and
# fsrm, because with them the kernel, and so soft-RoCE, copies by `rep movsb`, which QEMU emulates byte by byte: 8-byte
# words that are written meanwhile would be read torn (plane.hpp; Torn.NoWordOverRdma).
timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-erms,-fsrm -M q35 -smp 2 -m 2048 -nodefaults -display none -no-reboot \
  -kernel "$cache/vmlinuz" -initrd "$cache/initrd.gz" -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off" \
  -serial stdio -virtfs local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap \
  -virtfs local,path="$job",mount_tag=job,security_model=none < /dev/null || echo "rdma_vm: qemu ended with status $?" >&2
[ ! -e "$job/log" ] || sed 's/^/rdma_vm: /' "$job/log" >&2
[ -e "$job/status" ] || { echo "rdma_vm: the command did not end within $seconds s" >&2; exit 1; }
exit "$(cat "$job/status")"

#!/usr/bin/env bash
# The Debian packages of a build, where no source tree is: made, judged by lintian, installed into a clean root, used, removed.
#   packages_test.sh BUILD_DIR SOURCE_DIR      (exit code 77: skipped)
# The root is this machine's as an overlay shows it, without source and build tree: dpkg finds what the packages depend on,
# and whatever they leave behind is in the overlay's upper folder.
set -euo pipefail
build=$(realpath "$1") source=$(realpath "$2")
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "failed: $*" >&2; exit 1; }
for tool in cpack dpkg-shlibdeps lintian unshare; do
  command -v "$tool" >/dev/null || skip "$tool is not here (scripts/deps installs it)"
done
[ "$(id -u)" -eq 0 ] || skip "installing packages needs root"
names=(dynamix libdynamix-client1 libdynamix-dev python3-dynamix)
for name in "${names[@]}"; do
  [ "$(dpkg-query -W -f='${Status}' "$name" 2>/dev/null)" != "install ok installed" ] ||
    skip "$name is installed on this machine"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/overlay" "$work/job"
unshare --mount sh -c "mount -t tmpfs none '$work/overlay' && cd '$work/overlay' && mkdir upper work root &&
  mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root" 2>/dev/null || skip "no overlay can be mounted here"

started=$SECONDS
step() { echo "$((SECONDS - started)) s: $*"; }
step "cpack"
cpack --config "$build/CPackConfig.cmake" -B "$work/packages" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >"$work/cpack.log" 2>&1 ||
  { cat "$work/cpack.log"; exit 1; }
for name in "${names[@]}"; do
  ls "$work/packages/$name"_*.deb >/dev/null || fail "cpack made no $name"
done
step "lintian, in the background"
# Without the static libraries: it reads them for 20 s, and has no errors to tell of them.
mkdir "$work/judged"
ln "$work"/packages/*.deb "$work/judged"
dpkg-deb -R "$work"/judged/libdynamix-dev_*.deb "$work/unpacked"
find "$work/unpacked" -name '*.a' -delete
sed -i '/\.a$/d' "$work/unpacked/DEBIAN/md5sums"
rm "$work"/judged/libdynamix-dev_*.deb
dpkg-deb -Zgzip -b "$work/unpacked" "$work/judged" >/dev/null
lintian --fail-on error --allow-root "$work"/judged/*.deb >"$work/lintian" 2>&1 &
lintian=$!

cp -r "$source/tests/packages" "$work/packages"/*.deb "$work/job"
cat >"$work/job/use" <<'IN'
# Inside the clean root, with no variable but PATH and HOME.
set -euo pipefail
started=$SECONDS
step() { echo "$((SECONDS - started)) s: $*"; }
! command -v dynamix || exit 1
step "install"
dpkg --force-unsafe-io -i ./*.deb >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
step "the command, its data and its helpers"
dynamix --version
test "$(command -v dynamix)" = /usr/bin/dynamix
dynamix list workloads >names.log
grep -q lenet_fashion names.log
dynamix policy export /usr/share/dynamix/policies/default.safetensors --format torchscript --out policy.pt
test -s policy.pt
gzip -dc /usr/share/man/man1/dynamix.1.gz >manual.log
grep -q 'workers' manual.log
test -s /usr/share/bash-completion/completions/dynamix
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify --man=no /lib/systemd/system/dynamix-arbitrator.service
fi
step "a simulated comparison, and a live job of two ranks"
dynamix compare --backend sim --workload vgg16_cifar10 --cluster mixed --policies static,default --run compared \
  >compare.log 2>&1 || { cat compare.log; exit 1; }
test -s compared/report.html
dynamix train --backend live --workers 2 --workload demo/lenet_fashion --policy default --time 1 --run live \
  >live.log 2>&1 || { cat live.log; exit 1; }
test -s live/summary.json
ln -s /usr/bin/dynamix elsewhere
./elsewhere list scenarios --json >/dev/null
step "Python"
/usr/bin/python3 - <<'PY'
import importlib.metadata
import dynamix
import dynamix.torch
assert dynamix.__file__.startswith("/usr/lib/python3/dist-packages/"), dynamix.__file__
assert importlib.metadata.version("dynamix")
dynamix.Policy("default")
PY
step "consumers"
{ cmake -S packages -B built && cmake --build built --parallel 2; } >build.log 2>&1 || { cat build.log; exit 1; }
built/client
built/rooms
printf '#include <dynamix.h>\nint main(void) { return dynamix_abi_version() != DYNAMIX_ABI_VERSION; }\n' >abi.c
cc abi.c -ldynamix_client -o abi
./abi
step "remove"
dpkg --force-unsafe-io --purge dynamix libdynamix-client1 libdynamix-dev python3-dynamix >dpkg.log 2>&1 ||
  { cat dpkg.log; exit 1; }
test ! -e /usr/bin/dynamix
IN
cat >"$work/enter" <<'IN'
set -euo pipefail
work=$1 source=$2 build=$3 root=$1/overlay/root upper=$1/overlay/upper
mount -t tmpfs none "$work/overlay"
mkdir "$upper" "$work/overlay/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$upper,workdir=$work/overlay/work" "$root"
for hidden in "$source" "$build"; do
  if [ -d "$root$hidden" ]; then mount -t tmpfs none "$root$hidden"; fi
done
mount -t tmpfs none "$root/mnt"
cp -r "$work/job/." "$root/mnt"
mount --bind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc none "$root/proc"
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt chroot "$root" /bin/bash -c 'cd /mnt && exec bash use'
# What dpkg, ldconfig and the loggers keep for themselves is theirs. A name that the machine had, changed, is none that we left.
cd "$upper"
find . \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./tmp -o -path ./run \) -prune -o -print |
  while read -r left; do [ -e "/$left" ] || echo "${left#.}"; done >"$work/left"
IN
unshare --mount --pid --fork --kill-child bash "$work/enter" "$work" "$source" "$build"
[ ! -s "$work/left" ] || fail "after the packages were removed there is still: $(cat "$work/left")"
wait $lintian || { cat "$work/lintian"; fail "lintian found errors"; }
step "lintian: no errors, $(grep -c '^W:' "$work/lintian" || true) warnings"

# Sourced by the other scripts: installs what is missing on Debian 12 and 13, Ubuntu 22.04 and 24.04.
# shellcheck shell=sh

# need TEST PACKAGE...: when the command TEST fails, installs the packages.
wanted=
apt_wait_s=${ALLOT_APT_WAIT_S:-300}

need() {
	test_command=$1
	shift
	sh -c "$test_command" >/dev/null 2>&1 || wanted="$wanted $*"
}

can_be_root() {
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }
}

as_root() {
	can_be_root || return 1
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Installs everything that need() found missing; 1 with one clear line when it can't.
install_needed() {
	[ -n "$wanted" ] || return 0
	echo "installing:$wanted" >&2
	if ! command -v apt-get >/dev/null; then
		echo "allot: no apt-get here; please install by hand:$wanted" >&2
		return 1
	fi
	if ! can_be_root; then
		echo "allot: packages are missing and this user may not install any; please run as root: apt-get install$wanted" >&2
		return 1
	fi
	# Waits for another apt-get, such as that of unattended upgrades. Before apt 2.7 `update` can't wait and may fail, which
	# does not matter if the packages are known already.
	log=$(mktemp)
	# shellcheck disable=SC2086
	if { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout="$apt_wait_s" update || :
		as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout="$apt_wait_s" install -y \
			--no-install-recommends $wanted; } >"$log" 2>&1; then
		rm -f "$log"
		wanted=
		return 0
	fi
	tail -5 "$log" >&2
	rm -f "$log"
	echo "allot: apt-get could not install$wanted: its last lines are above; when that is mended, run this again" >&2
	return 1
}

# Prints the test, for need(), whether the compiler can use this library.
has_library() {
	printf 'pkg-config --exists %s' "$1"
}

need_build_tools() {
	need 'command -v cc' gcc libc6-dev
	need 'command -v meson' meson
	need 'command -v ninja' ninja-build
	need 'command -v pkg-config' pkg-config
	need "$(has_library jansson)" libjansson-dev
	need "$(has_library libmicrohttpd)" libmicrohttpd-dev
	need "$(has_library gnutls)" libgnutls28-dev
	need "$(has_library sqlite3)" libsqlite3-dev
	need "$(has_library libcurl)" libcurl4-openssl-dev
	need "$(has_library ncursesw)" libncurses-dev
	need "$(has_library cmocka)" libcmocka-dev
	need "$(has_library libnghttp2)" libnghttp2-dev
	need "$(has_library libprotobuf-c)" libprotobuf-c-dev
	need 'command -v protoc-c' protobuf-c-compiler
	need 'command -v python3' python3
}

# For scripts/package.
need_deb_tools() {
	need 'dpkg-query -W -f "\${Status}" build-essential | grep -q " installed"' build-essential
	need 'command -v dh' debhelper
	need 'command -v dh_python3' dh-python
}

need_rpm_tools() {
	need 'command -v rpmbuild' rpm
}

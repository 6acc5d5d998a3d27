#!/bin/sh
# Installs the Debian packages that some tests drive: inotifywait, setsid, ps, git, an
# OpenSSH server, busybox, locales, a browser. Only as root and only what is missing;
# without them those tests skip and say so, so this never fails, except where CI=true
# promises that nothing is skipped.
set -u
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing() {
	command -v inotifywait >/dev/null || echo inotify-tools
	command -v setsid >/dev/null || echo util-linux
	command -v ps >/dev/null || echo procps
	[ -e /usr/share/i18n/charmaps/ISO-8859-1.gz ] || echo locales
	command -v git >/dev/null || echo git
	[ -x /usr/sbin/sshd ] || echo openssh-server
	command -v ssh-keygen >/dev/null || echo openssh-client
	command -v busybox >/dev/null || echo busybox
	command -v node >/dev/null || echo nodejs
	command -v chromium >/dev/null || echo chromium
	command -v chromedriver >/dev/null || echo chromium-driver
}

# A server that comes with a package must not start to listen: exit 101 forbids it.
forbid_start() {
	policy=/usr/sbin/policy-rc.d
	[ ! -e "$policy" ] || return 0
	printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || return 1
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
}

install() {
	export DEBIAN_FRONTEND=noninteractive
	forbid_start || return 1
	timeout 300 apt-get update -qq
	# shellcheck disable=SC2086 # a list of names
	timeout 600 apt-get install -qq -y --no-install-recommends $wanted
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
said=
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	said=$(install 2>&1 </dev/null)
fi
wanted=$(missing)
if [ -n "$wanted" ] && [ "${CI:-}" = true ]; then
	echo "$said" >&2
	echo "not to be had: $(echo $wanted); CI skips nothing" >&2
	exit 1
fi
exit 0

# Sourced by scripts/package and scripts/release: copies and packs the source tree for a release.
# shellcheck shell=sh

# Copies the tree without build results: with git, tracked and new files; without git, everything but build*.
#     copy_tree FOLDER
copy_tree() {
	mkdir -p "$1"
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . -path './build*' -prune -o -type f -print0 -o -type l -print0
	fi | while_there | tar --null -T - -cf - | tar -xf - -C "$1"
}

# Leaves out tracked files that were deleted from the tree.
while_there() {
	xargs -0 sh -c 'for file; do [ ! -e "$file" ] && [ ! -L "$file" ] || printf "%s\0" "$file"; done' sh
}

version() {
	sed -n "s/^  version: '\(.*\)',/\1/p" meson.build | head -1
}

# The date of this version: that of debian/changelog's first entry, in seconds since 1970.
release_time() {
	date -u +%s -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -1)"
}

# Packs the tree into a tar file whose bytes do not depend on where and when it is made.
#     pack_tree FILE
pack_tree() {
	packed=$(mktemp -d)
	copy_tree "$packed/allot-$(version)"
	find "$packed" -type d -exec chmod 755 {} + -o -type f -perm -100 -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
	tar --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$(release_time)" -C "$packed" -cf "$1" \
		"allot-$(version)"
	rm -rf "$packed"
}

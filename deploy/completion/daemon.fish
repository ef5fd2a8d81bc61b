# fish completion of allotd and allot-scheduler: their --help has a line an option, and a line a setting, which is
# an option as well.
function __allot_daemon_complete
	set -l words (commandline -opc)
	$words[1] --help 2>/dev/null | sed -n \
		-e 's/^  \(--[a-z-]*\) .*/\1/p' \
		-e '/^Settings/,/^$/{/^  [a-z]/{s/^  \([a-z0-9_]*\) .*/--\1/;y/_/-/;p;}}'
end

complete -c allotd -a '(__allot_daemon_complete)'
complete -c allot-scheduler -a '(__allot_daemon_complete)'

# fish completion of allotd and allot-scheduler. Their --help has a line for each option and each setting. Each setting is an
# option too.
function __allot_daemon_complete
	set -l words (commandline -opc)
	$words[1] --help 2>/dev/null | sed -n \
		-e 's/^  \(--[a-z-]*\) .*/\1/p' \
		-e '/^Settings/,/^$/{/^  [a-z]/{s/^  \([a-z0-9_]*\) .*/--\1/;y/_/-/;p;}}'
end

complete -c allotd -a '(__allot_daemon_complete)'
complete -c allot-scheduler -a '(__allot_daemon_complete)'

# fish completion of allot. The command `allot complete` lists the words that fit.

# `allot complete` prints lines "WORD\tHELP", or ":..." for words that fish itself completes.
function __allot_complete
	set -l current (commandline -ct)
	set -l words (commandline -opc) "$current"
	for line in ($words[1] complete $words[2..-1] 2>/dev/null)
		switch $line
			case ':file'
				__fish_complete_path "$current"
			case ':directory'
				__fish_complete_directories "$current"
			case ':command *'
				set -l at (math (string replace ':command ' '' -- $line) + 2)
				complete -C (string join ' ' -- $words[$at..-1])
			case '*'
				echo $line
		end
	end
end

complete -c allot -f -a '(__allot_complete)'

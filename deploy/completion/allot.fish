# fish completion of allot. What fits is said by the program itself.

# Lines of `allot complete`: "WORD\tHELP", or ":..." for what fish completes.
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

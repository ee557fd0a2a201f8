exec 100>&0 101>&1 102>&2 >/dev/null 2>&1
unset HISTFILE PROMPT_COMMAND; set +o history; PS1= PS2=
command printf '{"ev":"ready","version":"%s"}\n' "${BASH_VERSION%%[!0-9.]*}" >&100
#--- run
command eval @CODE@ </dev/null >&101 2>&102 100>&- 101>&- 102>&-; command : "@ID@:$?"
command : "$?:$_"
command test "x$_" != "x${_#*:@ID@:}" && command : "${_#x}" || command : "${_%%:*}"
command : "${_/#x0/130}"
command test 0 -eq "${_#x}" ||
	command printf '{"ev":"error","id":"@ID@",%s,%s:"%s",%s:["%s %s"]}\n' \
	'"ename":"CommandExecError"' '"evalue"' "$_" '"traceback"' 'exit status' "$_" >&100
command printf '{"ev":"done","id":"@ID@"}\n' >&100

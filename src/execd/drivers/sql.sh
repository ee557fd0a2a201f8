# The driver for SQL where there is no Python: sqlite3's own shell, started for each run, so that a
# transaction does not outlive its run.  The rest is as in sql.py.
trap interrupted=1 INT
unset OPENSANDBOX_DRIVER_FD
exec 4>&- 5>&-
[ -w "${HOME:-/}" ] || HOME=/tmp
sqlite3=$1 db=${OPENSANDBOX_SQL_DATABASE:-$HOME/sandbox.db}
column=$'\037' row=$'\036' null=$'\035'

# As the inside of a JSON string.
escape() {
	REPLY=${1//\\/\\\\}
	REPLY=${REPLY//\"/\\\"}
	REPLY=${REPLY//$'\n'/\\n}
	REPLY=${REPLY//$'\r'/\\r}
	REPLY=${REPLY//$'\t'/\\t}
	REPLY=${REPLY//[$'\001'-$'\037']/?}
}

# Cuts $code behind the last semicolon that ends a statement with another behind it.
split() {
	local LC_ALL=C i=0 c quote='' cut=0
	shopt -s nocasematch
	if [[ $code != *trigger* ]]; then
		while [ $i -lt ${#code} ]; do
			c=${code:i:2}
			if [ "$quote" ]; then
				[ "${c:0:${#quote}}" = "$quote" ] && quote=
			elif [ "$c" = -- ]; then
				quote=$'\n'
			elif [ "$c" = '/*' ]; then
				quote='*/'
			else
				case ${c:0:1} in
				\' | \" | \`) quote=${c:0:1} ;;
				[) quote=] ;;
				\;) [[ ${code:i+1} == *[![:space:]\;]* ]] && cut=$((i + 1)) ;;
				esac
			fi
			i=$((i + 1))
		done
	fi
	shopt -u nocasematch
	before=${code:0:cut} last=${code:cut}
}

# Does the last statement give rows?  Comments in front of it say nothing.
is_query() {
	local text=${last,,}
	while :; do
		text=${text#"${text%%[![:space:](]*}"}
		case $text in
		--*$'\n'*) text=${text#*$'\n'} ;;
		'/*'*'*/'*) text=${text#*'*/'} ;;
		*) break ;;
		esac
	done
	[[ $text =~ ^(select|with|pragma|values|explain) ]]
}

# One line of sqlite3's output as a JSON array in REPLY.
array() {
	local line=$1$column cell fields=
	while [ "$line" ]; do
		cell=${line%%"$column"*} line=${line#*"$column"}
		escape "$cell"
		[ "$cell" = "$null" ] && REPLY=null || REPLY=\"$REPLY\"
		fields=$fields${fields:+,}$REPLY
	done
	REPLY=[$fields]
}

# All of it as {"columns":[...],"rows":[[...]]}.
table() {
	local rest=$1 columns='[]' rows=
	if [ "$rest" ]; then
		array "${rest%%"$row"*}"
		columns=$REPLY rest=${rest#*"$row"}
	fi
	while [ "$rest" ]; do
		array "${rest%%"$row"*}"
		rows=$rows${rows:+,}$REPLY rest=${rest#*"$row"}
	done
	REPLY="{\"columns\":$columns,\"rows\":[$rows]}"
}

fail() {
	local name=DBExecError
	escape "${out##*"$row"}"
	is_query && name=DBQueryError
	[[ $out == *"unable to open"* ]] && name=DBInitError
	[[ $out == *interrupted* || $1 -ge 128 ]] && name=KeyboardInterrupt
	printf '{"ev":"error","id":"%s","ename":"%s","evalue":"%s","traceback":["%s"]}\n' \
		"$id" $name "$REPLY" "$REPLY" >&3
}

run() {
	local out status=0 count='; SELECT changes();'
	split
	is_query && count=\;
	if [ "$interrupted" ]; then
		out=interrupted
		fail 130
		return
	fi
	out=$("$sqlite3" -batch -bail -header -separator "$column" -newline "$row" \
		-nullvalue "$null" "$db" 2>&1 3>&- <<<".output /dev/null
$before
.output stdout
$last
$count") || status=$?
	if [ $status -ne 0 ]; then
		fail $status
		return
	fi
	if is_query; then
		table "$out"
	else
		out=${out#*"$row"}
		REPLY="{\"columns\":[\"affected_rows\"],\"rows\":[[${out%%"$row"*}]]}"
	fi
	escape "$REPLY"
	printf '{"ev":"result","id":"%s","count":1,"data":{"text/plain":"%s"}}\n' "$id" "$REPLY" >&3
}

printf '{"ev":"ready","version":"%s"}\n' "$("$sqlite3" -version 3>&- | cut -d' ' -f1)" >&3
while IFS= read -r line <&3; do
	interrupted=
	case $line in '{"op":"run","id":"'*) ;; *) exit ;; esac
	line=${line#'{"op":"run","id":"'}
	id=${line%%\"*} code=${line#*'"code":"'}
	code=${code%'"}'}
	# In JSON a quote always has its backslash, and %b knows all other escapes.
	printf -v code %b "${code//\\\"/\"}"
	run
	printf '{"ev":"done","id":"%s"}\n' "$id" >&3
done

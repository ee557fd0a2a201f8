"""Bash contexts: one shell that stays."""

import pytest
from code_api import ENV, Code
from execd_process import Execd


@pytest.fixture(scope="module")
def execd(sanitizer_reports):
    daemon = Execd(env=ENV)
    yield daemon
    daemon.stop()


@pytest.fixture
def bash(execd):
    code = Code(execd, "bash")
    context = code.create()
    yield lambda text: code.run(text, context)
    code.delete(context)


@pytest.fixture
def context(execd):
    code = Code(execd, "bash")
    context = code.create()
    yield code, context
    code.delete(context)


def test_state_is_kept(bash, tmp_path):
    assert bash(f"x=5; f() {{ echo f $1; }}; alias hi='echo hello'; cd {tmp_path}").error is None
    assert bash("echo $x; f 3; hi; pwd").stdout == f"5\nf 3\nhello\n{tmp_path}\n"


def test_streams_are_apart_and_exact(bash):
    run = bash("printf 'no newline'; echo to stderr >&2; printf '\\xff\\n'")
    assert run.stdout == "no newline\ufffd\n" and run.stderr == "to stderr\n"


def test_the_exit_code_is_an_error(bash):
    run = bash("echo out; (exit 7)")
    assert run.stdout == "out\n"
    assert run.error == {"ename": "CommandExecError", "evalue": "7", "traceback": ["exit status 7"]}
    assert bash("true").error is None


def test_standard_input_is_empty(bash):
    assert bash("cat; read x; echo $?").stdout == "1\n"


@pytest.mark.parametrize("text", ["if; then", "for i in 1 2; do echo $i", "echo 'open", "cat <<EOF\nopen"])
def test_code_that_is_no_shell(bash, text):
    run = bash("x=1")
    run = bash(text)
    assert run.stderr or run.error
    assert bash("echo $x").stdout == "1\n"


@pytest.mark.parametrize("text", ["echo 'open", 'echo "open', "echo ${open", "echo `open", "f() {", ")"])
def test_code_that_does_not_end_is_an_error(bash, text):
    run = bash(text)
    assert run.error["evalue"] == "2" and run.stderr
    assert bash("false").error["evalue"] == "1"


def test_multi_line_code_and_quotes(bash):
    text = "cat <<'EOT'\nit's $HOME \"quoted\" \\n @ID@ @CODE@\nEOT\nfor i in 1 2\ndo\n  echo $i\ndone"
    assert bash(text).stdout == "it's $HOME \"quoted\" \\n @ID@ @CODE@\n1\n2\n"


@pytest.mark.parametrize("text", ["sleep 600", "while true; do sleep 1; done", "while :; do :; done",
                                  "f() { while :; do :; done; }; f", "cat /dev/zero > /dev/null"])
def test_an_interrupt_ends_the_run_and_keeps_the_state(context, text):
    code, one = context
    code.run("x=kept", one)
    # It may still be between two commands, where nothing fails.
    begun = code.begin(f"echo begun; {text}; echo not reached", one)
    code.interrupt(one)
    run = begun.finish()
    assert run.error["evalue"] == "130" and "not reached" not in run.stdout
    assert code.run("echo $x", one).stdout == "kept\n"


def test_exit_ends_the_shell_and_the_next_run_says_so(bash):
    bash("x=5")
    run = bash("exit 3")
    assert (run.ename, run.error["evalue"]) == ("CommandExecError", "3")
    again = bash("echo x=$x")
    assert again.stdout == "x=\n" and "lost" in again.stderr
    assert bash("echo calm").stderr == ""


def test_a_clean_exit_is_no_error(bash):
    run = bash("echo out; exit 0; echo not reached")
    assert run.stdout == "out\n" and run.error is None
    assert "lost" in bash("true").stderr


def test_set_e_and_kill_are_survived(bash):
    assert bash("set -e; false; echo not reached").error["evalue"] == "1"
    assert "lost" in bash("echo a").stderr
    assert bash("kill -9 $$").error["evalue"] == "-1"
    assert bash("echo b").stdout == "b\n"


def test_closed_and_replaced_descriptors(bash):
    assert bash("exec 1>&- 2>&-; echo nothing").stdout == ""
    assert bash("echo back; echo err >&2").stdout == "back\n"
    for fd in (3, 10, 100, 101, 102, 255):
        bash(f"exec {fd}>&-; echo '{{\"ev\":\"done\"}}' >&{fd}")
    assert bash("echo still").stdout == "still\n"


def test_background_jobs_do_not_hold_the_run(bash):
    run = bash("sleep 600 & echo started")
    assert run.stdout == "started\n"
    assert bash("kill %1; wait; echo waited").stdout.endswith("waited\n")


def test_much_output_is_complete(bash):
    run = bash("seq 1 300000")
    assert run.stdout == "".join(f"{n}\n" for n in range(1, 300001))


def test_nul_bytes_are_refused(execd):
    answer = execd.request("POST", "/code", b'{"code":"a\\u0000b","context":{"language":"bash"}}')
    assert answer.status == 400

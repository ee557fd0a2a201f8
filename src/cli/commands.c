/*
 * cli/commands.c - the table of all commands.
 */
#include "cli/commands.h"

#include "cli/cli.h"

#define END                                                                                        \
	{                                                                                          \
		0                                                                                  \
	}
#define SHOWN "table json yaml"
#define PAGES                                                                                      \
	{0, "page", "N", FLAG_ONCE, "Which page, from 1 on."},                                     \
	{                                                                                          \
		0, "page-size", "N", FLAG_ONCE, "How many on a page."                              \
	}
#define MODES                                                                                      \
	{0, "mode", "MODE", FLAG_ONCE, "Permissions, like 0644."},                                 \
		{0, "owner", "NAME", FLAG_ONCE, "Its owner in the sandbox."},                      \
	{                                                                                          \
		0, "group", "NAME", FLAG_ONCE, "Its group in the sandbox."                         \
	}
#define WORKDIR                                                                                    \
	{                                                                                          \
		'w', "workdir", "DIR", FLAG_ONCE, "Directory to run in."                           \
	}
#define LOGIN                                                                                      \
	{0, "username", "NAME", FLAG_ONCE, "For the registry."},                                   \
	{                                                                                          \
		0, "password", "TEXT", FLAG_ONCE, "For the registry: a password or a token."       \
	}

const struct flag cli_globals[] = {
	{0, "api-key", "KEY", FLAG_ONCE, "The server's key (OPEN_SANDBOX_API_KEY)."},
	{0, "domain", "HOST", FLAG_ONCE,
	 "Where the server is: localhost:8080, https://host/base, unix:/path "
	 "(OPEN_SANDBOX_DOMAIN)."},
	{0, "protocol", "NAME", FLAG_ONCE, "http or https (OPEN_SANDBOX_PROTOCOL)."},
	{0, "request-timeout", "SECONDS", FLAG_ONCE,
	 "For one request, streams excepted (OPEN_SANDBOX_REQUEST_TIMEOUT); 30."},
	{0, "use-server-proxy", NULL, FLAG_ONCE, "Reach sandboxes through the server."},
	{0, "no-use-server-proxy", NULL, FLAG_ONCE, "Reach sandboxes by their own endpoints."},
	{0, "config", "FILE", FLAG_ONCE, "Instead of ~/.opensandbox/config.toml."},
	{'v', "verbose", NULL, FLAG_ONCE, "Say more about failures."},
	{'q', "quiet", NULL, FLAG_ONCE,
	 "Say only what was asked for: ids, no titles, no progress."},
	{0, "no-color", NULL, FLAG_ONCE, "No colours, as with NO_COLOR."},
	{0, "version", NULL, FLAG_ONCE, "Print the version."},
	{'h', "help", NULL, FLAG_ONCE, "Print help, of a command behind it."},
	END,
};

const struct group cli_groups[] = {
	{"code", "Run code in interpreters that keep their state."},
	{"command", "Run commands in sandboxes."},
	{"command session", "Shells that remember their directory and variables."},
	{"config", "osb's own configuration."},
	{"credential-vault", "Secrets that a sandbox uses without seeing them."},
	{"credential-vault binding", "Which requests get which secrets."},
	{"credential-vault credential", "Names of secrets."},
	{"devops", "The older form of diagnostics."},
	{"diagnostics", "What happened in and around a sandbox."},
	{"egress", "What a sandbox may reach."},
	{"file", "Files in sandboxes."},
	{"image", "Images that the server has."},
	{"sandbox", "Make, find and end sandboxes."},
	{"server", "The server itself."},
	{"skills", "What coding agents should know of osb."},
	{"snapshot", "What a sandbox had written at one moment."},
	{"volume", "Directories that outlive sandboxes."},
	{0},
};

static const struct flag create_flags[] = {
	{'i', "image", "NAME", FLAG_ONCE,
	 "Image, like python:3.12; else defaults.image of the configuration."},
	{0, "image-auth-username", "NAME", FLAG_ONCE, "For a private registry."},
	{0, "image-auth-password", "TEXT", FLAG_ONCE,
	 "For a private registry: a password or a token."},
	{0, "snapshot-id", "ID", FLAG_ONCE, "Restore this snapshot instead of an image."},
	{'t', "timeout", "DURATION", FLAG_ONCE,
	 "It ends by itself after so long: 600, 10m, 1h30m, or none."},
	{'e', "env", "NAME=VALUE", FLAG_MANY, "A variable; may be given often."},
	{'m', "metadata", "NAME=VALUE", FLAG_MANY, "A label; may be given often."},
	{0, "extension", "NAME=VALUE", FLAG_MANY,
	 "An extension of the server's; may be given often."},
	{0, "resource", "NAME=VALUE", FLAG_MANY,
	 "A limit, like cpu=1 or memory=2Gi; may be given often."},
	{0, "entrypoint", "WORD", FLAG_MANY,
	 "What runs in it, word by word; else something that waits."},
	{0, "network-policy-file", "FILE", FLAG_ONCE, "What it may reach: JSON."},
	{0, "credential-proxy", NULL, FLAG_ONCE,
	 "Let it have a credential vault; needs a network policy."},
	{0, "secure-access", NULL, FLAG_ONCE, "Its ports answer only to those who show a token."},
	{0, "volumes-file", "FILE", FLAG_ONCE, "Its volumes: a JSON list."},
	{0, "skip-health-check", NULL, FLAG_ONCE, "Do not wait until it answers."},
	{0, "ready-timeout", "DURATION", FLAG_ONCE, "How long to wait for that; 30s."},
	END,
};
static const struct flag list_flags[] = {
	{'s', "state", "STATE", FLAG_MANY,
	 "Only those that are Running, Paused, ...; may be given often."},
	{'m', "metadata", "NAME=VALUE", FLAG_MANY,
	 "Only those with this label; may be given often."},
	PAGES,
	END,
};
static const struct flag resume_flags[] = {
	{0, "skip-health-check", NULL, FLAG_ONCE, "Do not wait until it answers."},
	{0, "resume-timeout", "DURATION", FLAG_ONCE, "How long to wait for that; 30s."},
	END,
};
static const struct flag renew_flags[] = {
	{'t', "timeout", "DURATION", FLAG_NEEDED, "It ends so long from now, like 30m or 2h."},
	END,
};
static const struct flag endpoint_flags[] = {
	{'p', "port", "PORT", FLAG_NEEDED, "A port in the sandbox."},
	END,
};
static const struct flag metrics_flags[] = {
	{0, "watch", NULL, FLAG_ONCE, "Again and again, until interrupted."},
	END,
};

static const struct flag run_flags[] = {
	{'d', "background", NULL, FLAG_ONCE,
	 "Start it and leave it: status and logs tell the rest."},
	WORKDIR,
	{'t', "timeout", "DURATION", FLAG_ONCE, "It is killed after so long."},
	END,
};
static const struct flag logs_flags[] = {
	{0, "cursor", "BYTES", FLAG_ONCE, "Only what comes behind so many bytes."},
	{'f', "follow", NULL, FLAG_ONCE, "Until the command has ended."},
	END,
};
static const struct flag session_create_flags[] = {WORKDIR, END};
static const struct flag session_run_flags[] = {
	WORKDIR,
	{'t', "timeout", "DURATION", FLAG_ONCE, "It is killed after so long."},
	END,
};

#define ENCODING                                                                                   \
	{                                                                                          \
		0, "encoding", "NAME", FLAG_ONCE,                                                  \
			"Of the file: utf-8 (the default: bytes), ascii, latin-1."                 \
	}
static const struct flag cat_flags[] = {ENCODING, END};
static const struct flag write_flags[] = {
	{'c', "content", "TEXT", FLAG_ONCE, "The content; else standard input."},
	ENCODING,
	MODES,
	END,
};
static const struct flag mkdir_flags[] = {MODES, END};
static const struct flag search_flags[] = {
	{'p', "pattern", "GLOB", FLAG_NEEDED, "What names look like: '*.py'."},
	END,
};
static const struct flag chmod_flags[] = {
	{0, "mode", "MODE", FLAG_NEEDED, "Permissions, like 0644."},
	{0, "owner", "NAME", FLAG_ONCE, "Its owner in the sandbox."},
	{0, "group", "NAME", FLAG_ONCE, "Its group in the sandbox."},
	END,
};
static const struct flag replace_flags[] = {
	{0, "old", "TEXT", FLAG_NEEDED, "What is replaced, wherever it stands."},
	{0, "new", "TEXT", FLAG_NEEDED, "What stands there then."},
	END,
};

static const struct flag patch_flags[] = {
	{0, "rule", "ACTION=TARGET", FLAG_NEEDED,
	 "allow=example.com, deny=*.example.org, allow=203.0.113.0/24; may be given often."},
	END,
};
static const struct flag learn_flags[] = {
	{0, "start", NULL, FLAG_ONCE, "Let everything pass from now on, and record what is used."},
	END,
};
static const struct flag vault_flags[] = {
	{0, "file", "FILE", FLAG_NEEDED,
	 "JSON; - is standard input, so that no secret stands on a command line."},
	END,
};
static const struct flag scope_flags[] = {
	{'s', "scope", "SCOPE", FLAG_NEEDED,
	 "container, lifecycle, runtime, network, all, or another of the server's."},
	END,
};
static const struct flag devops_logs_flags[] = {
	{'n', "tail", "N", FLAG_ONCE, "So many lines; 100."},
	{'s', "since", "DURATION", FLAG_ONCE, "Not older than that: 10m, 1h."},
	END,
};
static const struct flag devops_events_flags[] = {
	{'l', "limit", "N", FLAG_ONCE, "So many events; 50."},
	END,
};
static const struct flag devops_summary_flags[] = {
	{'n', "tail", "N", FLAG_ONCE, "So many lines of logs; 50."},
	{0, "event-limit", "N", FLAG_ONCE, "So many events; 20."},
	END,
};

static const struct flag snapshot_create_flags[] = {
	{0, "name", "NAME", FLAG_ONCE, "A name to find it by."},
	{0, "wait", NULL, FLAG_ONCE, "Wait until it is ready."},
	END,
};
static const struct flag snapshot_list_flags[] = {
	{0, "sandbox-id", "ID", FLAG_ONCE, "Only those of this sandbox."},
	{0, "name", "NAME", FLAG_ONCE, "Only those with this name."},
	{0, "state", "STATE", FLAG_ONCE,
	 "Only those that are Creating, Ready, Failed or Deleting."},
	PAGES,
	END,
};
static const struct flag page_flags[] = {PAGES, END};
static const struct flag login_flags[] = {LOGIN, END};
static const struct flag image_rm_flags[] = {
	{'f', "force", NULL, FLAG_ONCE, "Also if sandboxes use it: they keep what they need."},
	END,
};
static const struct flag prune_flags[] = {
	{'a', "all", NULL, FLAG_ONCE, "Also those that have a name."},
	END,
};
static const struct flag import_flags[] = {
	{0, "name", "NAME", FLAG_ONCE,
	 "What it is called; the files of a root directory need one."},
	END,
};
static const struct flag init_flags[] = {
	{0, "force", NULL, FLAG_ONCE, "Also if there is one."},
	END,
};

static const struct flag run_image_flags[] = {
	{'e', "env", "NAME=VALUE", FLAG_MANY, "A variable; may be given often."},
	{0, "resource", "NAME=VALUE", FLAG_MANY, "A limit, like cpu=1; may be given often."},
	WORKDIR,
	{'t', "timeout", "DURATION", FLAG_ONCE, "The sandbox ends by itself after so long; 10m."},
	{0, "keep", NULL, FLAG_ONCE, "Keep the sandbox and say its id."},
	END,
};
static const struct flag code_flags[] = {
	{'l', "language", "NAME", FLAG_ONCE,
	 "python (the default), javascript, typescript, bash, java, go, sql."},
	{'c', "code", "TEXT", FLAG_ONCE, "The code itself."},
	{0, "context", "ID", FLAG_ONCE, "In this context; else in a new one that goes at the end."},
	{0, "keep", NULL, FLAG_ONCE, "Keep the new context and say its id."},
	END,
};
static const struct flag shell_flags[] = {
	WORKDIR,
	{'c', "command", "TEXT", FLAG_ONCE, "Run this instead of a shell."},
	{0, "session", "ID", FLAG_ONCE, "Come back to this one; what was missed is shown."},
	{0, "takeover", NULL, FLAG_ONCE, "Although somebody else is attached."},
	{0, "view", NULL, FLAG_ONCE, "Only watch."},
	END,
};

#define AGENTS                                                                                     \
	{'t', "target", "NAMES", FLAG_ONCE,                                                        \
	 "claude (the default), cursor, codex, copilot, windsurf, cline, opencode, or all; "       \
	 "commas between them."},                                                                  \
		{0, "scope", "SCOPE", FLAG_ONCE,                                                   \
		 "project (here, the default) or global (in your home)."},                         \
	{                                                                                          \
		0, "all-builtins", NULL, FLAG_ONCE, "All skills."                                  \
	}
static const struct flag install_flags[] = {
	AGENTS,
	{'f', "force", NULL, FLAG_ONCE, "Replace what is there."},
	END,
};
static const struct flag uninstall_flags[] = {AGENTS, END};
static const struct flag follow_flags[] = {
	{'f', "follow", NULL, FLAG_ONCE, "Go on until interrupted."},
	{'n', "tail", "N", FLAG_ONCE, "Only the last lines of what there is."},
	END,
};
static const struct flag forward_flags[] = {
	{0, "address", "IP", FLAG_ONCE, "Where it listens; 127.0.0.1."},
	END,
};
static const struct flag top_flags[] = {
	{0, "interval", "DURATION", FLAG_ONCE, "How often it looks; 2s."},
	{0, "once", NULL, FLAG_ONCE, "Look once, also on a terminal."},
	END,
};

const struct command cli_commands[] = {
	{"code run", "ID [FILE]", "Run code.",
	 "From a file, -c, a pipe, or typed at a prompt. A value is printed; code that fails ends "
	 "with 1.",
	 code_flags, NULL, code_run},
	{"command interrupt", "ID EXECUTION", "Interrupt a command.", NULL, NULL, SHOWN,
	 command_interrupt},
	{"command logs", "ID EXECUTION", "Output of a command in the background.", NULL, logs_flags,
	 "raw json yaml", command_logs},
	{"command run", "ID -- COMMAND...", "Run a command.",
	 "Its output is printed as it comes, and osb ends with its exit code. Ctrl-C interrupts "
	 "it, "
	 "twice stops waiting for it. Words behind -- reach the program as they are: no shell "
	 "looks at them here or there.",
	 run_flags, "raw table json yaml", command_run},
	{"command session create", "ID", "Start a session.", NULL, session_create_flags, SHOWN,
	 session_create},
	{"command session delete", "ID SESSION", "End a session.", NULL, NULL, SHOWN,
	 session_delete},
	{"command session run", "ID SESSION -- COMMAND...", "Run a command in a session.", NULL,
	 session_run_flags, "raw", session_run},
	{"command status", "ID EXECUTION", "How a command is doing.", NULL, NULL, SHOWN,
	 command_status},
	{"completion", "SHELL", "Print completions for bash, zsh or fish.",
	 "As in: source <(osb completion bash)", NULL, NULL, completion},
	{"config init", NULL, "Write a configuration to begin with.", NULL, init_flags, SHOWN,
	 config_init},
	{"config set", "SECTION.NAME VALUE", "Change a setting.", NULL, NULL, SHOWN, config_set},
	{"config show", NULL, "What holds, wherever it comes from; the key is masked.", NULL, NULL,
	 SHOWN, config_show},
	{"cp", "SOURCE TARGET", "Copy files and directories into a sandbox and out of it.",
	 "One of the two is written ID:/path. Links below a directory are left out.", NULL, NULL,
	 copy},
	{"credential-vault binding get", "ID NAME", "Look at a binding.", NULL, NULL, SHOWN,
	 vault_binding_get},
	{"credential-vault binding list", "ID", "List bindings.", NULL, NULL, SHOWN,
	 vault_binding_list},
	{"credential-vault create", "ID", "Give a sandbox a vault.", NULL, vault_flags, SHOWN,
	 vault_create},
	{"credential-vault credential get", "ID NAME", "Look at a credential, not at its value.",
	 NULL, NULL, SHOWN, vault_credential_get},
	{"credential-vault credential list", "ID", "List credentials, not their values.", NULL,
	 NULL, SHOWN, vault_credential_list},
	{"credential-vault delete", "ID", "Take the vault away.", NULL, NULL, SHOWN, vault_delete},
	{"credential-vault get", "ID", "Look at the vault, not at its secrets.", NULL, NULL, SHOWN,
	 vault_get},
	{"credential-vault patch", "ID", "Change the vault, all of it or nothing.", NULL,
	 vault_flags, SHOWN, vault_patch},
	{"devops events", "ID", "Events as text.", NULL, devops_events_flags, "raw", devops_events},
	{"devops inspect", "ID", "All about a sandbox as text.", NULL, NULL, "raw", devops_inspect},
	{"devops logs", "ID", "Logs as text.", NULL, devops_logs_flags, "raw", devops_logs},
	{"devops summary", "ID", "All of these.", NULL, devops_summary_flags, "raw",
	 devops_summary},
	{"diagnostics events", "ID", "What happened.", NULL, scope_flags, "raw table json yaml",
	 diagnostics_events},
	{"diagnostics logs", "ID", "What was printed.", NULL, scope_flags, "raw table json yaml",
	 diagnostics_logs},
	{"doctor", NULL, "Is this host able to run sandboxes?",
	 "Each finding comes with what to do. It ends with 1 if something is missing without which "
	 "there are no sandboxes.",
	 NULL, SHOWN, doctor},
	{"egress get", "ID", "The policy that holds.", NULL, NULL, SHOWN, egress_get},
	{"egress learn", "ID", "What a sandbox has needed, as a policy.",
	 "With --start everything passes from then on and is recorded.", learn_flags, SHOWN,
	 egress_learn},
	{"egress patch", "ID", "Put rules before the others.", NULL, patch_flags, SHOWN,
	 egress_patch},
	{"file cat", "ID PATH", "Print a file.", NULL, cat_flags, "raw", file_cat},
	{"file chmod", "ID PATH", "Change permissions.", NULL, chmod_flags, SHOWN, file_chmod},
	{"file download", "ID REMOTE LOCAL", "Get a file.", NULL, NULL, SHOWN, file_download},
	{"file info", "ID PATH...", "All about files.", NULL, NULL, SHOWN, file_info},
	{"file mkdir", "ID PATH...", "Make directories, with those above them.", NULL, mkdir_flags,
	 SHOWN, file_mkdir},
	{"file mv", "ID SOURCE TARGET", "Move a file or a directory.", NULL, NULL, SHOWN, file_mv},
	{"file replace", "ID PATH", "Replace a text in a file.", NULL, replace_flags, SHOWN,
	 file_replace},
	{"file rm", "ID PATH...", "Delete files.", NULL, NULL, SHOWN, file_rm},
	{"file rmdir", "ID PATH...", "Delete directories with all that is in them.", NULL, NULL,
	 SHOWN, file_rmdir},
	{"file search", "ID PATH", "Find files below a directory.", NULL, search_flags, SHOWN,
	 file_search},
	{"file upload", "ID LOCAL REMOTE", "Send a file.", NULL, NULL, SHOWN, file_upload},
	{"file write", "ID PATH", "Write a file.", NULL, write_flags, SHOWN, file_write},
	{"image export", "NAME FILE",
	 "Write an image as an OCI layout, in a tar archive; - is standard output.", NULL, NULL,
	 NULL, image_export},
	{"image get", "NAME", "All about an image.", NULL, NULL, SHOWN, image_get},
	{"image import", "FILE", "Make images of an archive; - is standard input.", NULL,
	 import_flags, SHOWN, image_import},
	{"image list", NULL, "What is here.", NULL, page_flags, SHOWN, image_list},
	{"image prune", NULL, "Remove what nobody uses.", NULL, prune_flags, SHOWN, image_prune},
	{"image pull", "NAME", "Get an image from its registry.", NULL, login_flags, SHOWN,
	 image_pull},
	{"image push", "NAME [TARGET]", "Send an image to a registry.", NULL, login_flags, SHOWN,
	 image_push},
	{"image rm", "NAME", "Remove an image or one of its names.", NULL, image_rm_flags, SHOWN,
	 image_rm},
	{"logs", "ID", "What the sandbox's own program prints.", NULL, follow_flags, "raw", logs},
	{"man", "DIR", "Write the man pages into a directory.", NULL, NULL, NULL, man_pages},
	{"port-forward", "ID LOCAL:REMOTE...", "Ports of a sandbox as ports of this machine.",
	 "Until interrupted. It carries plain TCP, and needs a server of ours.", forward_flags,
	 NULL, port_forward},
	{"run", "IMAGE -- COMMAND...", "A sandbox for one command; nothing is left of it.",
	 "Output is printed as it comes, and osb ends with the command's exit code. Ctrl-C "
	 "interrupts it, "
	 "twice ends the sandbox.",
	 run_image_flags, NULL, run_image},
	{"sandbox create", NULL, "Make a sandbox.", NULL, create_flags, SHOWN, sandbox_create},
	{"sandbox endpoint", "ID", "Where a port can be reached.", NULL, endpoint_flags, SHOWN,
	 sandbox_endpoint},
	{"sandbox get", "ID", "All about a sandbox.", NULL, NULL, SHOWN, sandbox_get},
	{"sandbox health", "ID", "Does it answer?", NULL, NULL, SHOWN, sandbox_health},
	{"sandbox kill", "ID...", "End sandboxes.", NULL, NULL, SHOWN, sandbox_kill},
	{"sandbox list", NULL, "What there is.", NULL, list_flags, SHOWN, sandbox_list},
	{"sandbox metrics", "ID", "What it uses.", NULL, metrics_flags, SHOWN, sandbox_metrics},
	{"sandbox pause", "ID", "Stop all its processes.", NULL, NULL, SHOWN, sandbox_pause},
	{"sandbox renew", "ID", "Let it live longer, or shorter.", NULL, renew_flags, SHOWN,
	 sandbox_renew},
	{"sandbox resume", "ID", "Let them go on.", NULL, resume_flags, SHOWN, sandbox_resume},
	{"server status", NULL, "Does it answer, and what does it have?", NULL, NULL, SHOWN,
	 server_status},
	{"shell", "ID", "A terminal in a sandbox.",
	 "Ctrl-P Ctrl-Q leaves it running; --session comes back.", shell_flags, NULL, shell},
	{"skills install", "[SKILL]", "Put skills where an agent finds them.", NULL, install_flags,
	 SHOWN, skills_install},
	{"skills list", NULL, "What there is.", NULL, NULL, SHOWN, skills_list},
	{"skills show", "SKILL", "Print a skill.", NULL, NULL, "raw", skills_show},
	{"skills uninstall", "[SKILL]", "Take them away again.", NULL, uninstall_flags, SHOWN,
	 skills_uninstall},
	{"snapshot create", "ID", "Take a snapshot of a sandbox.", NULL, snapshot_create_flags,
	 SHOWN, snapshot_create},
	{"snapshot delete", "SNAPSHOT", "Delete a snapshot.", NULL, NULL, SHOWN, snapshot_delete},
	{"snapshot export", "SNAPSHOT FILE", "Write a snapshot as an OCI layout, in a tar archive.",
	 NULL, NULL, NULL, snapshot_export},
	{"snapshot get", "SNAPSHOT", "All about a snapshot.", NULL, NULL, SHOWN, snapshot_get},
	{"snapshot list", NULL, "What there is.", NULL, snapshot_list_flags, SHOWN, snapshot_list},
	{"top", NULL, "Sandboxes with what they use, again and again.",
	 "In a pipe, or with another output, once.", top_flags, SHOWN, top},
	{"volume create", "NAME", "Make an empty volume.", NULL, NULL, SHOWN, volume_create},
	{"volume fill", "NAME FILE", "Unpack an archive into a volume; - is standard input.", NULL,
	 NULL, SHOWN, volume_fill},
	{"volume get", "NAME", "All about a volume, with its size.", NULL, NULL, SHOWN, volume_get},
	{"volume list", NULL, "What there is.", NULL, page_flags, SHOWN, volume_list},
	{"volume rm", "NAME", "Remove a volume.", NULL, NULL, SHOWN, volume_rm},
	{0},
};

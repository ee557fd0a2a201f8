/*
 * image/host_text.c - users, names and start-up files, written out.
 */
#include "image/host_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/view.h"
#include "codec/resolv.h"

static const struct {
	const char *path;
	mode_t mode;
	const char *text;
} texts[] = {
	{"etc/passwd", 0644,
	 "root:x:0:0:root:/root:/bin/bash\n"
	 "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
	 "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
	 "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
	 "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
	 "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
	 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"etc/group", 0644,
	 "root:x:0:\n"
	 "daemon:x:1:\n"
	 "bin:x:2:\n"
	 "sys:x:3:\n"
	 "adm:x:4:\n"
	 "tty:x:5:\n"
	 "disk:x:6:\n"
	 "mail:x:8:\n"
	 "www-data:x:33:\n"
	 "utmp:x:43:\n"
	 "staff:x:50:\n"
	 "users:x:100:\n"
	 "sandbox:x:1000:\n"
	 "nogroup:x:65534:\n"},
	{"etc/hostname", 0644, "sandbox\n"},
	{"etc/hosts", 0644,
	 "127.0.0.1\tlocalhost sandbox\n"
	 "::1\tlocalhost ip6-localhost ip6-loopback\n"},
	{"etc/nsswitch.conf", 0644,
	 "passwd: files\n"
	 "group: files\n"
	 "shadow: files\n"
	 "hosts: files dns\n"
	 "networks: files\n"
	 "protocols: files\n"
	 "services: files\n"},
	{"etc/host.conf", 0644, "multi on\n"},
	/* Nobody has a password: root becomes whom it wants, others stay who they are. */
	{"etc/pam.d/other", 0644,
	 "auth sufficient pam_rootok.so\n"
	 "auth required pam_deny.so\n"
	 "account required pam_permit.so\n"
	 "session required pam_permit.so\n"
	 "password required pam_deny.so\n"},
	{"etc/shells", 0644, "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n"},
	{"etc/profile", 0644,
	 "# Login shells: the settings that every program of the sandbox starts with.\n"
	 "export PATH=\"${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\"\n"
	 "for script in /etc/profile.d/*.sh; do\n"
	 "\t[ -r \"$script\" ] && . \"$script\"\n"
	 "done\n"
	 "unset script\n"},
	{"etc/bash.bashrc", 0644,
	 "# Interactive shells.\n"
	 "[ -z \"$PS1\" ] && return\n"
	 "PS1='\\u@\\h:\\w\\$ '\n"
	 "shopt -s checkwinsize\n"},
	{"opt/code-interpreter/code-interpreter.sh", 0755,
	 "#!/bin/sh\n"
	 "# Keeps the sandbox alive: everything that runs in it is started through its daemon.\n"
	 "trap 'kill $! 2>/dev/null; exit 0' TERM INT\n"
	 "while :; do\n"
	 "\tsleep 2147483647 &\n"
	 "\twait $!\n"
	 "done\n"},
};

static int write_text(int root_fd, const char *path, mode_t mode, const char *text, struct err *e)
{
	osb_cleanup(fd_closep) int fd =
		openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_set(e, -errno, "create %s: %m", path);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return err_set(e, -ENOSPC, "write %s", path);
	return 0;
}

static int write_resolv(int root_fd, const struct resolv_conf *dns, struct err *e)
{
	char text[RESOLV_MAX * 48 + 1] = "";
	size_t len = 0;

	for (unsigned i = 0; i < dns->n; i++) {
		struct in_addr a = {.s_addr = htonl(dns->servers[i])};
		char address[INET_ADDRSTRLEN];

		(void)inet_ntop(AF_INET, &a, address, sizeof(address));
		len += (size_t)snprintf(text + len, sizeof(text) - len, "nameserver %s\n", address);
	}
	return write_text(root_fd, "etc/resolv.conf", 0644, text, e);
}

int host_text_write(int root_fd, const struct resolv_conf *dns, struct err *e)
{
	int r = write_resolv(root_fd, dns, e);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(texts); i++)
		r = write_text(root_fd, texts[i].path, texts[i].mode, texts[i].text, e);
	return r;
}

/*
 * cli/commands.h - what each command of the table does.
 */
#pragma once

struct cli;

int sandbox_create(struct cli *c);
int sandbox_list(struct cli *c);
int sandbox_get(struct cli *c);
int sandbox_kill(struct cli *c);
int sandbox_pause(struct cli *c);
int sandbox_resume(struct cli *c);
int sandbox_renew(struct cli *c);
int sandbox_endpoint(struct cli *c);
int sandbox_health(struct cli *c);
int sandbox_metrics(struct cli *c);

int command_run(struct cli *c);
int command_status(struct cli *c);
int command_logs(struct cli *c);
int command_interrupt(struct cli *c);
int session_create(struct cli *c);
int session_run(struct cli *c);
int session_delete(struct cli *c);

int file_cat(struct cli *c);
int file_write(struct cli *c);
int file_upload(struct cli *c);
int file_download(struct cli *c);
int file_rm(struct cli *c);
int file_mv(struct cli *c);
int file_mkdir(struct cli *c);
int file_rmdir(struct cli *c);
int file_search(struct cli *c);
int file_info(struct cli *c);
int file_chmod(struct cli *c);
int file_replace(struct cli *c);

int egress_get(struct cli *c);
int egress_patch(struct cli *c);
int egress_learn(struct cli *c);
int vault_create(struct cli *c);
int vault_patch(struct cli *c);
int vault_get(struct cli *c);
int vault_delete(struct cli *c);
int vault_credential_list(struct cli *c);
int vault_credential_get(struct cli *c);
int vault_binding_list(struct cli *c);
int vault_binding_get(struct cli *c);
int diagnostics_logs(struct cli *c);
int diagnostics_events(struct cli *c);
int devops_logs(struct cli *c);
int devops_inspect(struct cli *c);
int devops_events(struct cli *c);
int devops_summary(struct cli *c);

int snapshot_create(struct cli *c);
int snapshot_get(struct cli *c);
int snapshot_list(struct cli *c);
int snapshot_delete(struct cli *c);
int snapshot_export(struct cli *c);

int image_list(struct cli *c);
int image_get(struct cli *c);
int image_pull(struct cli *c);
int image_rm(struct cli *c);
int image_prune(struct cli *c);
int image_import(struct cli *c);
int image_export(struct cli *c);
int image_push(struct cli *c);
int volume_list(struct cli *c);
int volume_create(struct cli *c);
int volume_get(struct cli *c);
int volume_rm(struct cli *c);
int volume_fill(struct cli *c);

int config_init(struct cli *c);
int config_show(struct cli *c);
int config_set(struct cli *c);

int run_image(struct cli *c);
int code_run(struct cli *c);
int shell(struct cli *c);
int copy(struct cli *c);
int server_status(struct cli *c);
int top(struct cli *c);
int doctor(struct cli *c);
int skills_list(struct cli *c);
int skills_show(struct cli *c);
int skills_install(struct cli *c);
int skills_uninstall(struct cli *c);
int logs(struct cli *c);
int port_forward(struct cli *c);
int completion(struct cli *c);
int man_pages(struct cli *c);

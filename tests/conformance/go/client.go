// The published Go client: client HOST:PORT KEY
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	opensandbox "github.com/alibaba/OpenSandbox/sdks/sandbox/go"
)

const (
	image    = "opensandbox/code-interpreter:latest"
	deadline = 60 * time.Second
)

var (
	ctx  = context.Background()
	conf opensandbox.ConnectionConfig
)

// check ends the case unless the fact holds.
func check(fact bool, format string, args ...any) {
	if !fact {
		panic(fmt.Sprintf(format, args...))
	}
}

// must gives the value, or ends the case.
func must[T any](value T, err error) T {
	check(err == nil, "%v", err)
	return value
}

func done(err error) { check(err == nil, "%v", err) }

func eventually(fact func() bool) {
	end := time.Now().Add(deadline)
	for !fact() {
		check(time.Now().Before(end), "not in time")
		time.Sleep(20 * time.Millisecond)
	}
}

func options() opensandbox.SandboxCreateOptions {
	limits := opensandbox.ResourceLimits{"cpu": "1", "memory": "256Mi"}
	return opensandbox.SandboxCreateOptions{Image: image, ResourceLimits: limits}
}

func create(o opensandbox.SandboxCreateOptions) *opensandbox.Sandbox {
	return must(opensandbox.CreateSandbox(ctx, conf, o))
}

func run(box *opensandbox.Sandbox, command string) string {
	return strings.TrimSpace(must(box.RunCommand(ctx, command, nil)).Text())
}

func lifecycle(*opensandbox.Sandbox) {
	o := options()
	o.Env = map[string]string{"A": "one"}
	o.Metadata = map[string]string{"team": "red"}
	box := create(o)
	info := must(box.GetInfo(ctx))
	check(info.ID == box.ID() && info.Status.State == "Running", "%+v", info)
	check(info.Metadata["team"] == "red" && info.ExpiresAt != nil, "%+v", info)
	check(box.IsHealthy(ctx), "not healthy")
	check(run(box, "echo $A") == "one", "environment")
	other := must(opensandbox.ConnectSandbox(ctx, conf, box.ID()))
	check(run(other, "echo $A") == "one", "connected")
	done(box.Kill(ctx))
	eventually(func() bool {
		_, err := box.GetInfo(ctx)
		return err != nil
	})
}

func manualCleanup(*opensandbox.Sandbox) {
	o := options()
	o.ManualCleanup = true
	o.Entrypoint = []string{"sleep", "1000"}
	box := create(o)
	info := must(box.GetInfo(ctx))
	check(info.ExpiresAt == nil && info.Entrypoint[0] == "sleep", "%+v", info)
	done(box.Kill(ctx))
}

func commands(box *opensandbox.Sandbox) {
	var seen []string
	note := func(kind, text string) error {
		seen = append(seen, kind+" "+text)
		return nil
	}
	handlers := &opensandbox.ExecutionHandlers{
		OnInit:     func(e opensandbox.ExecutionInit) error { return note("init", e.ID) },
		OnStdout:   func(m opensandbox.OutputMessage) error { return note("out", m.Text) },
		OnStderr:   func(m opensandbox.OutputMessage) error { return note("err", m.Text) },
		OnComplete: func(opensandbox.ExecutionComplete) error { return note("complete", "") },
		OnError:    func(e opensandbox.ExecutionError) error { return note("error", e.Value) },
	}
	all := must(box.RunCommand(ctx, "echo one; echo two >&2", handlers))
	check(all.ExitCode != nil && *all.ExitCode == 0, "exit code")
	check(len(seen) == 4 && seen[0] == "init "+all.ID && seen[3] == "complete ", "%q", seen)
	failed := must(box.RunCommand(ctx, "exit 7", handlers))
	check(failed.ExitCode != nil && *failed.ExitCode == 7, "exit code of a failure")
	check(seen[len(seen)-1] == "error 7", "%q", seen)
	nobody := int32(65534)
	request := opensandbox.RunCommandRequest{
		Command: "pwd; echo $X; id -u",
		Cwd:     "/tmp",
		Envs:    map[string]string{"X": "y"},
		UID:     &nobody,
		GID:     &nobody,
	}
	out := must(box.RunCommandWithOpts(ctx, request, nil))
	check(len(out.Stdout) == 3 && out.Stdout[0].Text == "/tmp", "%+v", out.Stdout)
	check(out.Stdout[1].Text == "y" && out.Stdout[2].Text == "65534", "%+v", out.Stdout)
	late := opensandbox.RunCommandRequest{Command: "sleep 1000", Timeout: 500}
	check(must(box.RunCommandWithOpts(ctx, late, nil)).Error != nil, "no timeout")
}

func background(box *opensandbox.Sandbox) {
	endpoint := must(box.GetEndpoint(ctx, 44772))
	url := endpoint.Endpoint
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	execd := opensandbox.NewExecdClient(url, "", opensandbox.WithHeaders(endpoint.Headers))
	request := opensandbox.RunCommandRequest{Command: "echo log; exit 3", Background: true}
	started := must(box.RunCommandWithOpts(ctx, request, nil))
	var status *opensandbox.CommandStatusResponse
	eventually(func() bool {
		status = must(execd.GetCommandStatus(ctx, started.ID))
		return !status.Running
	})
	check(status.ExitCode != nil && *status.ExitCode == 3, "%+v", status)
	logs := must(execd.GetCommandLogs(ctx, started.ID, nil))
	check(strings.TrimSpace(logs.Output) == "log", "%+v", logs)
}

func sessions(box *opensandbox.Sandbox) {
	session := must(box.CreateSession(ctx))
	in := func(command string) string {
		request := opensandbox.RunInSessionRequest{Command: command}
		return strings.TrimSpace(must(box.RunInSession(ctx, session.ID, request, nil)).Text())
	}
	in("export KEPT=1; cd /tmp")
	check(in("echo $KEPT") == "1" && in("pwd") == "/tmp", "the session forgot")
	done(box.DeleteSession(ctx, session.ID))
}

func files(box *opensandbox.Sandbox) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 20000)
	done(box.CreateDirectory(ctx, "/data/go/sub", 755))
	metadata := opensandbox.FileMetadata{Path: "/data/go/one.bin", Mode: 640}
	upload := opensandbox.UploadFileOptions{FileName: "one.bin", Metadata: metadata}
	done(box.UploadFile(ctx, bytes.NewReader(data), upload))
	stream := must(box.DownloadFile(ctx, "/data/go/one.bin", ""))
	check(bytes.Equal(must(io.ReadAll(stream)), data), "downloaded bytes")
	done(stream.Close())
	part := must(box.DownloadFile(ctx, "/data/go/one.bin", "bytes=1-3"))
	check(string(must(io.ReadAll(part))) == "123", "a range")
	done(part.Close())
	info := must(box.GetFileInfo(ctx, "/data/go/one.bin"))["/data/go/one.bin"]
	check(info.Size == int64(len(data)) && info.Mode == 640, "%+v", info)
	permission := opensandbox.Permission{Mode: 600, Owner: "nobody"}
	done(box.SetPermissions(ctx, opensandbox.PermissionsRequest{"/data/go/one.bin": permission}))
	info = must(box.GetFileInfo(ctx, "/data/go/one.bin"))["/data/go/one.bin"]
	check(info.Owner == "nobody" && info.Mode == 600, "%+v", info)
	change := opensandbox.ReplaceItem{Old: "0123", New: "zero"}
	done(box.ReplaceInFiles(ctx, opensandbox.ReplaceRequest{"/data/go/one.bin": change}))
	check(run(box, "head -c 4 /data/go/one.bin") == "zero", "replaced")
	found := must(box.SearchFiles(ctx, "/data/go", "*.bin"))
	check(len(found) == 1 && found[0].Path == "/data/go/one.bin", "%+v", found)
	move := opensandbox.MoveItem{Src: "/data/go/one.bin", Dest: "/data/go/sub/two.bin"}
	done(box.MoveFiles(ctx, opensandbox.MoveRequest{move}))
	done(box.DeleteFiles(ctx, []string{"/data/go/sub/two.bin"}))
	done(box.DeleteDirectory(ctx, "/data/go"))
}

func metrics(box *opensandbox.Sandbox) {
	m := must(box.GetMetrics(ctx))
	check(m.CPUCount > 0 && m.MemTotalMB > m.MemUsedMB, "%+v", m)
}

func pauseAndResume(*opensandbox.Sandbox) {
	box := create(options())
	done(box.Pause(ctx))
	eventually(func() bool { return must(box.GetInfo(ctx)).Status.State == "Paused" })
	resumed := must(box.Resume(ctx))
	check(run(resumed, "echo back") == "back", "resumed")
	done(resumed.Kill(ctx))
}

func renew(box *opensandbox.Sandbox) {
	answer := must(box.Renew(ctx, 30*time.Minute))
	left := time.Until(answer.ExpiresAt)
	check(left > 25*time.Minute && left < 31*time.Minute, "%v", left)
}

func managerFilters(*opensandbox.Sandbox) {
	label := fmt.Sprintf("run-%d", time.Now().UnixNano())
	manager := opensandbox.NewSandboxManager(conf)
	var boxes []*opensandbox.Sandbox
	for _, n := range []string{"0", "1", "0"} {
		o := options()
		o.Metadata = map[string]string{"run": label, "n": n}
		boxes = append(boxes, create(o))
	}
	list := func(states []opensandbox.SandboxState, pairs ...string) []opensandbox.SandboxInfo {
		filter := opensandbox.ListOptions{States: states, Metadata: map[string]string{"run": label}}
		for i := 0; i < len(pairs); i += 2 {
			filter.Metadata[pairs[i]] = pairs[i+1]
		}
		return must(manager.ListSandboxInfos(ctx, filter)).Items
	}
	check(len(list(nil)) == 3 && len(list(nil, "n", "0")) == 2, "by metadata")
	filter := opensandbox.ListOptions{Metadata: map[string]string{"run": label}, Page: 2, PageSize: 2}
	page := must(manager.ListSandboxInfos(ctx, filter))
	check(len(page.Items) == 1 && page.Pagination.TotalItems == 3, "%+v", page.Pagination)
	done(manager.PauseSandbox(ctx, boxes[1].ID()))
	eventually(func() bool { return len(list([]opensandbox.SandboxState{"Paused"})) == 1 })
	done(manager.ResumeSandbox(ctx, boxes[1].ID()))
	for _, box := range boxes {
		done(manager.KillSandbox(ctx, box.ID()))
	}
}

func metadataPatch(box *opensandbox.Sandbox) {
	blue, big, small := "blue", "big", "small"
	must(box.PatchMetadata(ctx, opensandbox.MetadataPatch{"color": &blue, "size": &big}))
	info := must(box.PatchMetadata(ctx, opensandbox.MetadataPatch{"color": nil, "size": &small}))
	check(len(info.Metadata) == 1 && info.Metadata["size"] == "small", "%v", info.Metadata)
}

func endpoints(box *opensandbox.Sandbox) {
	direct := must(box.GetEndpoint(ctx, 44772))
	check(direct.Endpoint != "" && len(direct.Headers) > 0, "%+v", direct)
	proxied := conf
	proxied.UseServerProxy = true
	through := must(opensandbox.ConnectSandbox(ctx, proxied, box.ID()))
	path := "/sandboxes/" + box.ID() + "/proxy/44772"
	endpoint := must(through.GetEndpoint(ctx, 44772)).Endpoint
	check(strings.Contains(endpoint, path), "%s", endpoint)
	check(run(through, "echo through") == "through", "through the server")
}

func failure(err error, status int) {
	var failed *opensandbox.APIError
	check(errors.As(err, &failed), "%v", err)
	check(failed.StatusCode == status && failed.RequestID != "", "%+v", failed)
}

func errorsCarryARequestID(*opensandbox.Sandbox) {
	_, err := opensandbox.NewSandboxManager(conf).GetSandboxInfo(ctx, "no-such-sandbox")
	failure(err, 404)
	stranger := conf
	stranger.APIKey = "wrong"
	_, err = opensandbox.NewSandboxManager(stranger).ListSandboxInfos(ctx, opensandbox.ListOptions{})
	failure(err, 401)
}

var cases = []struct {
	name string
	run  func(box *opensandbox.Sandbox)
}{
	{"lifecycle", lifecycle},
	{"manual cleanup", manualCleanup},
	{"commands", commands},
	{"background", background},
	{"sessions", sessions},
	{"files", files},
	{"metrics", metrics},
	{"pause and resume", pauseAndResume},
	{"renew", renew},
	{"manager filters", managerFilters},
	{"metadata patch", metadataPatch},
	{"endpoints", endpoints},
	{"network policies", networkPolicies},
	{"errors carry a request id", errorsCarryARequestID},
	{"code", code},
}

func networkPolicies(*opensandbox.Sandbox) {
	o := options()
	o.NetworkPolicy = &opensandbox.NetworkPolicy{
		Egress: []opensandbox.NetworkRule{{Action: "allow", Target: "a.test"}},
	}
	box := create(o)
	status := must(box.GetEgressPolicy(ctx))
	check(status.Mode == "enforcing" && status.Policy.DefaultAction == "deny", "%+v", status)
	check(len(status.Policy.Egress) == 1, "%+v", status.Policy)
	must(box.PatchEgressRules(ctx, []opensandbox.NetworkRule{{Action: "allow", Target: "b.test"}}))
	must(box.DeleteEgressRules(ctx, []string{"a.test"}))
	status = must(box.GetEgressPolicy(ctx))
	check(len(status.Policy.Egress) == 1 && status.Policy.Egress[0].Target == "b.test", "%+v", status.Policy)
	done(box.Kill(ctx))
}

func code(*opensandbox.Sandbox) {
	limits := opensandbox.ResourceLimits{"cpu": "1", "memory": "512Mi"}
	it := must(opensandbox.CreateCodeInterpreter(ctx, conf,
		opensandbox.CodeInterpreterCreateOptions{ResourceLimits: limits}))
	first := must(it.Execute(ctx, "python", "import sys\nprint(sys.version)\nx = 2 + 2\nx", nil))
	check(first.Error == nil && len(first.Results) == 1, "%+v", first)
	check(first.Results[0].Results["text/plain"] == "4", "%+v", first)
	second := must(it.Execute(ctx, "python", "x * 10", nil))
	check(second.Results[0].Results["text/plain"] == "40", "%+v", second)
	wrong := must(it.Execute(ctx, "python", "1/0", nil))
	check(wrong.Error != nil && wrong.Error.Name == "ZeroDivisionError", "%+v", wrong)
	done(it.Kill(ctx))
}

func try(name string, run func(*opensandbox.Sandbox), box *opensandbox.Sandbox) (ok bool) {
	defer func() {
		if why := recover(); why != nil {
			fmt.Printf("not ok %s\n%v\n", name, why)
		}
	}()
	run(box)
	fmt.Printf("ok %s\n", name)
	return true
}

func main() {
	conf = opensandbox.ConnectionConfig{Domain: os.Args[1], Protocol: "http", APIKey: os.Args[2]}
	box := create(options())
	failed := 0
	for _, c := range cases {
		if !try(c.name, c.run, box) {
			failed++
		}
	}
	done(box.Kill(ctx))
	if failed > 0 {
		os.Exit(1)
	}
}

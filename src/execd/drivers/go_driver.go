// The driver for Go. A cell becomes a program: its declarations, those of earlier cells that it uses, the variables of
// earlier cells with their values, and its statements. Go builds it, and it runs as a child of this process.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"go/parser"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type set map[string]bool

// A declaration that later cells may use.
type decl struct {
	names         []string // "T.m" for methods
	text          string   // with its line directive
	uses          set
	isVar, isType bool
}

// The text without its place.
func (d *decl) body() string { return directive.ReplaceAllString(d.text, "") }

var directive = regexp.MustCompile(`//line .*\n|/\*line \S+\*/`)

func (d *decl) usesAny(names set) bool {
	for name := range names {
		own := false
		for _, one := range d.names {
			own = own || one == name
		}
		if d.uses[name] && !own {
			return true
		}
	}
	return false
}

type variable struct {
	value   string
	imports []string
}

type kept struct {
	decls   map[string]*decl
	imports map[string]string // name -> path
	state   map[string]variable
	lost    map[string]string // variables that could not be kept: why
}

// ---- making a program --------------------------------------------------------------------------------------------

type program struct {
	c         *cell
	k         *kept
	decls     []*decl // of earlier cells
	variables []string
	dropped   set // imports that nobody uses
	plain     bool
}

// Everything of earlier cells that the cell uses, and what that uses in turn.
func (p *program) collect() {
	wanted, own, imported, seen := []string{}, set{}, set{}, map[*decl]bool{}
	for _, one := range p.c.imports {
		imported[one[0]] = true
	}
	for name := range p.c.used {
		wanted = append(wanted, name)
	}
	for _, d := range p.c.decls {
		for _, name := range d.names {
			own[name] = true
			if !d.isType { // methods of a type that is declared anew are gone
				wanted = append(wanted, p.methods(name)...)
			}
		}
		for name := range d.uses {
			wanted = append(wanted, name)
		}
	}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		d := p.k.decls[name]
		if d == nil || own[name] || imported[name] || seen[d] {
			continue
		}
		seen[d] = true
		p.decls = append(p.decls, d)
		for used := range d.uses {
			wanted = append(wanted, used)
		}
		for _, one := range d.names {
			wanted = append(wanted, p.methods(one)...)
		}
	}
	sort.Slice(p.decls, func(i, j int) bool { return p.decls[i].names[0] < p.decls[j].names[0] })
	for _, d := range p.decls {
		if d.isVar {
			p.variables = append(p.variables, d.names...)
		}
	}
}

func (p *program) methods(name string) []string {
	var all []string
	for other := range p.k.decls {
		if strings.HasPrefix(other, name+".") {
			all = append(all, other)
		}
	}
	return all
}

func (p *program) writeImports(out *bytes.Buffer) {
	used, lines := set{}, set{}
	for name := range p.c.used {
		used[name] = true
	}
	for _, d := range append(append([]*decl{}, p.decls...), p.c.decls...) {
		for name := range d.uses {
			used[name] = true
		}
	}
	names := map[string]string{}
	for name, path := range p.k.imports {
		names[name] = path
	}
	for _, one := range p.c.imports {
		if one[0] == "_" || one[0] == "." {
			lines[one[0]+" "+strconv.Quote(one[1])] = true
		} else {
			names[one[0]] = one[1]
		}
	}
	for name, path := range names {
		if used[name] && !p.dropped[path] && !p.c.isLocal[name] {
			lines[name+" "+strconv.Quote(path)] = true
		}
	}
	for _, one := range p.c.imports { // that it exists is checked now, even if nobody uses it yet
		lines["_ "+strconv.Quote(one[1])] = true
	}
	for _, name := range p.variables {
		for _, line := range p.k.state[name].imports {
			lines[line] = true
		}
	}
	for line := range lines {
		fmt.Fprintf(out, "import %s\n", line)
	}
}

func (p *program) body() string {
	code := string(p.c.code)
	if from, to := p.c.last[0], p.c.last[1]; to > from && !p.plain {
		at := strings.TrimSuffix(strings.TrimPrefix(p.c.directive(from), "//line "), "\n")
		code = code[:from] + "__state.Result(/*line " + at + "*/" + code[from:to] + ")" + code[to:]
	}
	return code
}

func (p *program) text(in, out string) string {
	var b bytes.Buffer
	b.WriteString("package main\nimport __state \"cell/state\"\n")
	p.writeImports(&b)
	for _, d := range append(append([]*decl{}, p.decls...), p.c.decls...) {
		b.WriteString(d.text + "\n")
	}
	fmt.Fprintf(&b, "//line driver.go:1\nfunc main() {\ndefer __state.End(%q)\n", out)
	fmt.Fprintf(&b, "__state.Load(%q, map[string]interface{}{", in)
	for _, name := range p.variables {
		if _, ok := p.k.state[name]; ok {
			fmt.Fprintf(&b, "%q: &%s, ", name, name)
		}
	}
	fmt.Fprintf(&b, "})\n__cell()\n}\nfunc __cell() {\n//line %s:1:1\n%s\n//line driver.go:2\n", p.c.file(), p.body())
	if p.c.hasMain && !p.c.used["__main"] {
		b.WriteString("__main()\n")
	}
	for _, name := range p.toKeep() {
		fmt.Fprintf(&b, "__state.Keep(%q, &%s)\n", name, name)
	}
	b.WriteString("}\n")
	return b.String()
}

func (p *program) toKeep() []string {
	names := append(append([]string{}, p.variables...), p.c.locals...)
	for _, d := range p.c.decls {
		if d.isVar {
			names = append(names, d.names...)
		}
	}
	once, seen := []string{}, set{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			once = append(once, name)
		}
	}
	return once
}

func (p *program) input() []byte {
	var b bytes.Buffer
	put := func(s string) {
		var n [binary.MaxVarintLen64]byte
		b.Write(n[:binary.PutUvarint(n[:], uint64(len(s)))])
		b.WriteString(s)
	}
	for _, name := range p.variables {
		if v, ok := p.k.state[name]; ok {
			put(name)
			put(v.value)
		}
	}
	return b.Bytes()
}

// ---- remembering -------------------------------------------------------------------------------------------------

func (k *kept) forget(name string) {
	if d := k.decls[name]; d != nil {
		for _, one := range d.names {
			delete(k.decls, one)
		}
	}
	delete(k.state, name)
	delete(k.lost, name)
}

// What depends on `name`, which is declared anew as another type: its methods, and values laid out by it.
func (k *kept) forgetType(name string) {
	for other := range k.decls {
		if strings.HasPrefix(other, name+".") {
			k.forget(other)
		}
	}
	for other := range k.state {
		if k.reaches(k.decls[other], name, set{}) {
			k.forget(other)
			k.lost[other] = "its type was declared anew"
		}
	}
}

func (k *kept) reaches(d *decl, name string, seen set) bool {
	if d == nil || seen[d.names[0]] {
		return false
	}
	seen[d.names[0]] = true
	for used := range d.uses {
		if used == name || k.decls[used] != nil && k.decls[used].isType && k.reaches(k.decls[used], name, seen) {
			return true
		}
	}
	return false
}

func (k *kept) add(d *decl) {
	for _, name := range d.names {
		if d.isType && k.decls[name] != nil && k.decls[name].body() != d.body() {
			k.forgetType(name)
		}
	}
	for _, name := range d.names {
		k.forget(name)
	}
	for _, name := range d.names {
		k.decls[name] = d
		delete(k.imports, name)
	}
}

func (k *kept) take(c *cell) {
	for _, one := range c.imports {
		if one[0] != "." && one[0] != "_" {
			k.forget(one[0])
			k.imports[one[0]] = one[1]
		}
	}
	for pass := 0; pass < 2; pass++ { // types first: they take their old methods away
		for _, d := range c.decls {
			named := len(d.names) > 1 || len(d.names) == 1 && d.names[0] != "init" && d.names[0] != "_"
			if named && d.isType == (pass == 0) {
				k.add(d)
			}
		}
	}
}

// A variable whose value was saved: from now on it is declared with its type alone.
func (k *kept) takeValue(parts []string) {
	name, kind := parts[0], parts[1]
	imports := append([]string{}, parts[3:]...)
	for i, line := range imports {
		fresh := "__" + name + strconv.Itoa(i)
		old := strings.SplitN(line, " ", 2)
		kind = strings.ReplaceAll(kind, old[0]+".", fresh+".")
		imports[i] = fresh + " " + old[1]
	}
	used := set{}
	if e, err := parser.ParseExpr(kind); err == nil {
		used = uses(e)
	}
	k.add(&decl{names: []string{name}, text: "//line driver.go:3\nvar " + name + " " + kind, uses: used, isVar: true})
	k.state[name] = variable{parts[2], imports}
}

// Its declaration is repeated with every run, if it has one; else it is gone.
func (k *kept) takeLost(c *cell, parts []string) {
	if d := c.again[parts[0]]; d != nil && !d.usesAny(c.isLocal) {
		k.add(d)
	} else if d := k.decls[parts[0]]; d == nil || k.state[parts[0]].value != "" {
		k.forget(parts[0])
		k.lost[parts[0]] = parts[1]
	}
}

type record struct {
	kind  byte
	parts []string
}

func readReport(path string) []record {
	b, _ := os.ReadFile(path)
	in := bytes.NewReader(b)
	var all []record
	for in.Len() > 0 {
		kind, _ := in.ReadByte()
		n, err := binary.ReadUvarint(in)
		r := record{kind: kind}
		for ; err == nil && n > 0; n-- {
			var size uint64
			size, err = binary.ReadUvarint(in)
			if err != nil || size > uint64(in.Len()) {
				return all
			}
			part := make([]byte, size)
			in.Read(part)
			r.parts = append(r.parts, string(part))
		}
		if err != nil {
			return all
		}
		all = append(all, r)
	}
	return all
}

// ---- runs --------------------------------------------------------------------------------------------------------

type driver struct {
	channel *os.File
	goTool  string
	dir     string
	env     []string
	kept    kept

	lock        sync.Mutex
	child       *os.Process
	interrupted bool
}

func (d *driver) send(message map[string]interface{}) {
	b, _ := json.Marshal(message)
	b = bytes.ReplaceAll(b, []byte(`\u0000`), []byte(`\ufffd`)) // NUL is no text to execd
	d.channel.Write(append(b, '\n'))
}

// One child at a time, a process group of its own, gone when we are.
func (d *driver) execute(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	d.lock.Lock()
	if d.interrupted {
		d.lock.Unlock()
		return fmt.Errorf("interrupted")
	}
	err := cmd.Start()
	d.child = cmd.Process
	d.lock.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	d.lock.Lock()
	d.child = nil
	d.lock.Unlock()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}

func (d *driver) wasInterrupted() bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.interrupted
}

func (d *driver) interrupt() {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.interrupted = true
	child := d.child
	if child == nil {
		return
	}
	syscall.Kill(-child.Pid, syscall.SIGINT)
	time.AfterFunc(time.Second, func() {
		d.lock.Lock()
		defer d.lock.Unlock()
		if d.child == child {
			syscall.Kill(-child.Pid, syscall.SIGKILL)
		}
	})
}

var unused = regexp.MustCompile(`"([^"]+)" imported (?:as \S+ )?and not used`)
var place = regexp.MustCompile(`^(?:\./|\S*/)?(?:main\.go:\d+:\d+: |(cell-\d+\.go:))`)

// The compiler's lines, ours left out.
func errorLines(output string) []string {
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(output), "\n") {
		if strings.HasPrefix(line, "# ") || strings.Contains(line, "driver.go:") {
			continue
		}
		line = strings.ReplaceAll(place.ReplaceAllString(line, "$1"), "__main", "main")
		if lines = append(lines, line); len(lines) == 50 {
			break
		}
	}
	return lines
}

func (d *driver) compileFailure(output string) *failure {
	lines := errorLines(output)
	if len(lines) == 0 {
		lines = []string{strings.TrimSpace(output)}
	}
	first := lines[0]
	for name, why := range d.kept.lost {
		if strings.Contains(output, "undefined: "+name+"\n") {
			lines = append(lines, fmt.Sprintf("'%s' was not kept from an earlier run: %s", name, why))
		}
	}
	return &failure{"CompileError", first, lines}
}

func (d *driver) path(name string) string { return filepath.Join(d.dir, name) }

// Imports that turn out unused and values that turn out void are no errors here: the program is made again without.
func (d *driver) build(p *program) *failure {
	for attempt := 0; ; attempt++ {
		text := p.text(d.path("in"), d.path("out"))
		if err := os.WriteFile(d.path("main.go"), []byte(text), 0o600); err != nil {
			return &failure{"CompileError", err.Error(), []string{err.Error()}}
		}
		var output bytes.Buffer
		cmd := exec.Command(d.goTool, "build", "-trimpath", "-ldflags=-s -w", "-gcflags=-e", "-o", d.path("cell"), ".")
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = d.dir, d.env, &output, &output
		if d.execute(cmd) == nil || d.wasInterrupted() {
			return nil
		}
		again := false
		for _, m := range unused.FindAllStringSubmatch(output.String(), -1) {
			again = again || !p.dropped[m[1]]
			p.dropped[m[1]] = true
		}
		if !p.plain && p.c.last[1] > 0 && strings.Contains(output.String(), "used as value") {
			p.plain, again = true, true
		}
		if !again || attempt > 3 {
			return d.compileFailure(output.String())
		}
	}
}

var frame = regexp.MustCompile(`(?m)^(\S.*)\(.*\)\n\t\S*?(cell-\d+\.go):(\d+)`)

func panicFailure(parts []string) *failure {
	trace := []string{"panic: " + parts[0]}
	for _, m := range frame.FindAllStringSubmatch(parts[1], -1) {
		name := strings.TrimPrefix(strings.TrimPrefix(m[1], "main."), "__")
		trace = append(trace, fmt.Sprintf("    at %s (%s:%s)", name, m[2], m[3]))
	}
	return &failure{"panic", parts[0], trace}
}

func (d *driver) run(code string, count int) (*failure, string) {
	c, wrong := readCell(code, count)
	if wrong != nil {
		return wrong, ""
	}
	if c.isEmpty() {
		return nil, ""
	}
	p := &program{c: c, k: &d.kept, dropped: set{}}
	p.collect()
	if wrong = d.build(p); wrong != nil || d.wasInterrupted() {
		return wrong, ""
	}
	os.WriteFile(d.path("in"), p.input(), 0o600)
	os.Remove(d.path("out"))
	cmd := exec.Command(d.path("cell"))
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, os.Environ()
	err := d.execute(cmd)
	d.kept.take(c)
	if err != nil {
		wrong = &failure{"ExitError", err.Error(), []string{err.Error()}}
	}
	result := ""
	for _, r := range readReport(d.path("out")) {
		switch {
		case r.kind == 'V' && len(r.parts) >= 3:
			d.kept.takeValue(r.parts)
		case r.kind == 'L' && len(r.parts) == 2:
			d.kept.takeLost(c, r.parts)
		case r.kind == 'R' && len(r.parts) == 1:
			result = r.parts[0]
		case r.kind == 'P' && len(r.parts) == 2:
			wrong = panicFailure(r.parts)
		}
	}
	return wrong, result
}

func (d *driver) serve(line []byte) bool {
	var m struct {
		Op, ID, Code string
		Count        int
	}
	if json.Unmarshal(line, &m) != nil || m.Op == "exit" {
		return false
	}
	d.lock.Lock()
	d.interrupted = false
	d.lock.Unlock()
	wrong, result := d.run(m.Code, m.Count)
	if d.wasInterrupted() {
		wrong = &failure{"KeyboardInterrupt", "the run was interrupted", []string{"KeyboardInterrupt"}}
	}
	if wrong != nil {
		d.send(map[string]interface{}{
			"ev": "error", "id": m.ID, "ename": wrong.name, "evalue": wrong.value, "traceback": wrong.trace,
		})
	} else if result != "" {
		data := map[string]string{"text/plain": result}
		d.send(map[string]interface{}{"ev": "result", "id": m.ID, "count": m.Count, "data": data})
	}
	d.send(map[string]interface{}{"ev": "done", "id": m.ID})
	return true
}

// ---- the process -------------------------------------------------------------------------------------------------

// The tool's own root, whatever another version has left in the environment.
func environment(goTool string) []string {
	env := []string{}
	for _, one := range os.Environ() {
		switch strings.SplitN(one, "=", 2)[0] {
		case "GOROOT", "GOFLAGS", "GO111MODULE", "GOWORK", "PATH", "GOOS", "GOARCH":
		default:
			env = append(env, one)
		}
	}
	return append(env, "GO111MODULE=on", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"),
		"PATH="+filepath.Dir(goTool)+":"+os.Getenv("PATH"))
}

func (d *driver) begin() error {
	var err error
	if d.dir, err = os.MkdirTemp("", "opensandbox-go-"); err != nil {
		return err
	}
	state, err := os.ReadFile("/proc/self/fd/6")
	if err != nil {
		return err
	}
	if err = os.Mkdir(d.path("state"), 0o700); err != nil {
		return err
	}
	if err = os.WriteFile(d.path("state/state.go"), state, 0o600); err != nil {
		return err
	}
	language := "1.18"
	if parts := strings.Split(strings.TrimPrefix(runtime.Version(), "go"), "."); len(parts) > 1 {
		language = parts[0] + "." + strings.FieldsFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' })[0]
	}
	return os.WriteFile(d.path("go.mod"), []byte("module cell\n\ngo "+language+"\n"), 0o600)
}

func main() {
	runtime.LockOSThread() // children die with the thread that started them
	number, _ := strconv.Atoi(os.Getenv("OPENSANDBOX_DRIVER_FD"))
	os.Unsetenv("OPENSANDBOX_DRIVER_FD")
	high, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(number), syscall.F_DUPFD_CLOEXEC, 100)
	d := &driver{channel: os.NewFile(high, "channel"), goTool: os.Args[1]}
	d.env = environment(d.goTool)
	d.kept = kept{map[string]*decl{}, map[string]string{}, map[string]variable{}, map[string]string{}}
	err := d.begin()
	for fd := number; fd < number+4; fd++ {
		syscall.Close(fd)
	}
	if err != nil {
		d.send(map[string]interface{}{"ev": "failed", "message": "the Go driver cannot write its files: " + err.Error()})
		return
	}
	defer os.RemoveAll(d.dir)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT)
	go func() {
		for range signals {
			d.interrupt()
		}
	}()
	d.send(map[string]interface{}{"ev": "ready", "version": strings.TrimPrefix(runtime.Version(), "go")})
	in := bufio.NewReaderSize(d.channel, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil || !d.serve(line) {
			return
		}
	}
}

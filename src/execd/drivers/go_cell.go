// How the driver for Go reads a cell: what is declared, what is imported, what is left to run.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

type cell struct {
	number  int
	code    []byte // declarations are blanked out; what remains are statements
	decls   []*decl
	imports [][2]string // name, path
	used    set
	locals  []string
	isLocal set
	last    [2]int // offsets of the expression whose value is shown
	hasMain bool

	statements int
	again      map[string]*decl // local variables with a declaration that later cells can repeat
}

type failure struct {
	name, value string
	trace       []string
}

func (c *cell) file() string { return fmt.Sprintf("cell-%d.go", c.number) }

func (c *cell) line(offset int) int { return 1 + bytes.Count(c.code[:offset], []byte("\n")) }

func (c *cell) cut(from, to int) string {
	text := string(c.code[from:to])
	for i := from; i < to; i++ {
		if c.code[i] != '\n' {
			c.code[i] = ' '
		}
	}
	return text
}

func (c *cell) directive(offset int) string {
	column := offset - bytes.LastIndexByte(c.code[:offset], '\n')
	return fmt.Sprintf("//line %s:%d:%d\n", c.file(), c.line(offset), column)
}

type tok struct {
	at   int
	kind token.Token
	text string
}

func scan(code []byte) []tok {
	var s scanner.Scanner
	var all []tok
	fs := token.NewFileSet()
	s.Init(fs.AddFile("", fs.Base(), len(code)), code, func(token.Position, string) {}, 0)
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return all
		}
		all = append(all, tok{int(pos) - 1, kind, text})
	}
}

// The index of the token behind the brackets that open at `i`.
func closing(all []tok, i int) int {
	depth := 0
	for ; i < len(all); i++ {
		switch all[i].kind {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// A function or method is declared at `i`, and not a function literal called.
func declares(all []tok, i int) bool {
	if i+1 < len(all) && all[i+1].kind == token.IDENT {
		return true
	}
	j := closing(all, i+1)
	return j+1 < len(all) && all[j].kind == token.IDENT && (all[j+1].kind == token.LPAREN || all[j+1].kind == token.LBRACK)
}

// What may not stand in a function's body: package, imports and functions. Each as [from, to).
func (c *cell) outside() (funcs, imports [][2]int) {
	all := scan(c.code)
	depth, fresh := 0, true
	for i := 0; i < len(all); i++ {
		kind := all[i].kind
		end := i
		if depth == 0 && fresh && (kind == token.PACKAGE || kind == token.IMPORT || kind == token.FUNC && declares(all, i)) {
			for end = i; end < len(all) && all[end].kind != token.SEMICOLON; end++ {
				if k := all[end].kind; k == token.LPAREN || k == token.LBRACE || k == token.LBRACK {
					end = closing(all, end) - 1
				}
			}
			span := [2]int{all[i].at, len(c.code)}
			if end < len(all) {
				span[1] = all[end].at
			}
			switch kind {
			case token.FUNC:
				funcs = append(funcs, span)
			case token.IMPORT:
				imports = append(imports, span)
			default:
				c.cut(span[0], span[1])
			}
			i = end
			continue
		}
		switch kind {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		}
		fresh = kind == token.SEMICOLON
	}
	return funcs, imports
}

func uses(node ast.Node) set {
	found := set{}
	ast.Inspect(node, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			ast.Inspect(x.X, func(m ast.Node) bool {
				for name := range usesOfLeaf(m) {
					found[name] = true
				}
				return true
			})
			return false
		default:
			for name := range usesOfLeaf(n) {
				found[name] = true
			}
		}
		return true
	})
	return found
}

func usesOfLeaf(n ast.Node) set {
	if id, ok := n.(*ast.Ident); ok {
		return set{id.Name: true}
	}
	return nil
}

// What is missing at the end is missing in the last line: what we put behind it is nobody's business.
func (c *cell) syntaxFailure(err error) *failure {
	lines := 1 + bytes.Count(bytes.TrimRight(c.code, "\n"), []byte("\n"))
	trace := []string{}
	if list, ok := err.(scanner.ErrorList); ok {
		for _, one := range list {
			if one.Pos.Line > lines {
				one.Pos.Line, one.Pos.Column = lines, 1
			}
			trace = append(trace, one.Error())
		}
	}
	if len(trace) == 0 {
		trace = []string{err.Error()}
	}
	return &failure{"CompileError", trace[0], trace}
}

const head = "package main\n"

func (c *cell) parse(from int, text string) (*ast.File, *token.FileSet, *failure) {
	fs := token.NewFileSet()
	file, err := parser.ParseFile(fs, c.file(), head+c.directive(from)+text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, c.syntaxFailure(err)
	}
	return file, fs, nil
}

func (c *cell) readImports(spans [][2]int) *failure {
	for _, span := range spans {
		file, _, wrong := c.parse(span[0], string(c.code[span[0]:span[1]]))
		if wrong != nil {
			return wrong
		}
		c.cut(span[0], span[1])
		for _, one := range file.Imports {
			path, _ := strconv.Unquote(one.Path.Value)
			name := importName(path)
			if one.Name != nil {
				name = one.Name.Name
			}
			c.imports = append(c.imports, [2]string{name, path})
		}
	}
	return nil
}

var version = regexp.MustCompile(`^v[0-9]+$`)

func importName(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if version.MatchString(last) && len(parts) > 1 {
		last = parts[len(parts)-2]
	}
	last = strings.TrimPrefix(strings.TrimSuffix(last, ".go"), "go-")
	if i := strings.IndexAny(last, ".-"); i > 0 {
		last = last[:i]
	}
	return last
}

// main becomes an ordinary function, which our own calls.
func renameMain(code []byte) []byte {
	var out []byte
	at := 0
	all := scan(code)
	for i, t := range all {
		isName := i == 0 || all[i-1].kind != token.PERIOD && all[i-1].kind != token.PACKAGE
		if isName && t.kind == token.IDENT && t.text == "main" {
			out = append(append(out, code[at:t.at]...), "__"...)
			at = t.at
		}
	}
	return append(out, code[at:]...)
}

func baseType(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func (c *cell) readFuncs(spans [][2]int) *failure {
	for _, span := range spans {
		file, _, wrong := c.parse(span[0], string(c.code[span[0]:span[1]]))
		if wrong != nil {
			return wrong
		}
		f, ok := file.Decls[len(file.Decls)-1].(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil && len(f.Recv.List) > 0 {
			name = baseType(f.Recv.List[0].Type) + "." + name
		}
		c.hasMain = c.hasMain || name == "__main"
		d := &decl{names: []string{name}, uses: uses(f), text: c.directive(span[0])}
		d.text += c.cut(span[0], span[1])
		c.decls = append(c.decls, d)
	}
	return nil
}

func hasCall(node ast.Node) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			id, _ := call.Fun.(*ast.Ident)
			found = found || id == nil || id.Name != "make" && id.Name != "new" && id.Name != "len"
		}
		return !found
	})
	return found
}

// Variables stand at package level where functions see them, unless that would change what they become.
func (c *cell) staysLocal(g *ast.GenDecl) bool {
	used := uses(g)
	for name := range used {
		if c.isLocal[name] {
			return true
		}
	}
	if !hasCall(g) {
		return false
	}
	for _, d := range c.decls {
		for _, name := range namesOf(g) {
			if d.uses[name] {
				return false
			}
		}
	}
	return true
}

func namesOf(g *ast.GenDecl) []string {
	var names []string
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, s.Name.Name)
		case *ast.ValueSpec:
			for _, id := range s.Names {
				if id.Name != "_" {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

func (c *cell) addLocal(name string) {
	if name != "_" && !c.isLocal[name] {
		c.isLocal[name] = true
		c.locals = append(c.locals, name)
	}
}

// A value worth showing: not what only prints or has none.
func (c *cell) isShown(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return true
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		for _, builtin := range []string{"print", "println", "panic", "delete", "close", "copy", "clear", "__main"} {
			if f.Name == builtin {
				return false
			}
		}
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		if ok && x.Name == "fmt" && (strings.HasPrefix(f.Sel.Name, "Print") || strings.HasPrefix(f.Sel.Name, "Fprint")) {
			return false
		}
	}
	return true
}

// Constants of a group stand and fall together; types and variables are declared one by one.
func (c *cell) addDecls(g *ast.GenDecl, from, to, base int) {
	if g.Tok == token.CONST || !g.Lparen.IsValid() {
		c.decls = append(c.decls, &decl{
			names: namesOf(g), uses: uses(g), isVar: g.Tok == token.VAR, isType: g.Tok == token.TYPE,
			text: c.directive(from) + string(c.code[from:to]),
		})
	} else {
		for _, spec := range g.Specs {
			one := &ast.GenDecl{Tok: g.Tok, Specs: []ast.Spec{spec}}
			start, end := int(spec.Pos())-base, int(spec.End())-base
			at := strings.TrimSuffix(strings.TrimPrefix(c.directive(start), "//line "), "\n")
			c.decls = append(c.decls, &decl{
				names: namesOf(one), uses: uses(spec), isVar: g.Tok == token.VAR, isType: g.Tok == token.TYPE,
				text: fmt.Sprintf("%s /*line %s*/%s", g.Tok, at, c.code[start:end]),
			})
		}
	}
	c.cut(from, to)
}

func (c *cell) isEmpty() bool { return c.statements == 0 && len(c.decls) == 0 && len(c.imports) == 0 }

func (c *cell) readBody() *failure {
	begin := head + "func _() {\n//line " + c.file() + ":1:1\n"
	fs := token.NewFileSet()
	file, err := parser.ParseFile(fs, c.file(), begin+string(c.code)+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return c.syntaxFailure(err)
	}
	body := file.Decls[0].(*ast.FuncDecl).Body
	base := fs.File(file.Pos()).Base() + len(begin)
	c.used, c.statements = uses(body), len(body.List)
	for i, stmt := range body.List {
		from, to := int(stmt.Pos())-base, int(stmt.End())-base
		switch s := stmt.(type) {
		case *ast.DeclStmt:
			g := s.Decl.(*ast.GenDecl)
			if g.Tok == token.VAR && c.staysLocal(g) {
				again := &decl{names: namesOf(g), uses: uses(g), isVar: true, text: c.directive(from) + string(c.code[from:to])}
				for _, name := range again.names {
					c.addLocal(name)
					c.again[name] = again
				}
				continue
			}
			c.addDecls(g, from, to, base)
		case *ast.AssignStmt:
			for _, e := range s.Lhs {
				if id, ok := e.(*ast.Ident); ok && s.Tok == token.DEFINE {
					c.addLocal(id.Name)
				}
			}
		case *ast.ExprStmt:
			if i == len(body.List)-1 && c.isShown(s.X) {
				c.last = [2]int{from, to}
			}
		}
	}
	return nil
}

func readCell(code string, number int) (*cell, *failure) {
	c := &cell{number: number, code: renameMain([]byte(code)), used: set{}, isLocal: set{}, again: map[string]*decl{}}
	funcs, imports := c.outside()
	if wrong := c.readImports(imports); wrong != nil {
		return nil, wrong
	}
	if wrong := c.readFuncs(funcs); wrong != nil {
		return nil, wrong
	}
	return c, c.readBody()
}

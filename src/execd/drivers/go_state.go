// A package that every cell imports: what is shown, and how values of variables outlive the process. A value that
// cannot be kept in full is not kept at all, and the driver says so.
package state

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"
)

const limit = 64 << 20

type coder struct {
	out      bytes.Buffer
	in       *bytes.Reader
	pointers map[unsafe.Pointer]uint64
	values   []reflect.Value
	imports  map[string]string
}

var report bytes.Buffer

func (c *coder) u(n uint64) {
	var b [binary.MaxVarintLen64]byte
	c.out.Write(b[:binary.PutUvarint(b[:], n)])
}

func (c *coder) bytes(b []byte) {
	c.u(uint64(len(b)))
	c.out.Write(b)
}

func (c *coder) readU() uint64 {
	n, err := binary.ReadUvarint(c.in)
	if err != nil {
		panic(err)
	}
	return n
}

func (c *coder) readBytes() []byte {
	b := make([]byte, c.readU())
	c.in.Read(b)
	return b
}

// Fields that begin with a small letter are ours as well, if the type is.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

func foreign(t reflect.Type) bool {
	if t.PkgPath() == "" || t.PkgPath() == "main" {
		return false
	}
	for i := 0; i < t.NumField(); i++ {
		if t.Field(i).PkgPath != "" {
			return true
		}
	}
	return false
}

func copied(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

var loose = []reflect.Type{
	reflect.TypeOf(false), reflect.TypeOf(""), reflect.TypeOf(0), reflect.TypeOf(int64(0)), reflect.TypeOf(0.0),
	reflect.TypeOf(uint8(0)), reflect.TypeOf(int32(0)), reflect.TypeOf([]interface{}{}),
	reflect.TypeOf(map[string]interface{}{}), reflect.TypeOf([]string{}), reflect.TypeOf([]int{}),
	reflect.TypeOf([]byte{}), reflect.TypeOf([]float64{}), reflect.TypeOf(map[string]string{}),
	reflect.TypeOf(map[string]int{}),
}

// Only types with a name have methods.
func (c *coder) marshal(v reflect.Value) (bool, error) {
	if v.Type().PkgPath() == "" {
		return false, nil
	}
	self := v.Addr().Interface()
	if m, ok := self.(encoding.BinaryMarshaler); ok {
		if _, ok := self.(encoding.BinaryUnmarshaler); ok {
			b, err := m.MarshalBinary()
			c.bytes(b)
			return true, err
		}
	}
	if m, ok := self.(encoding.TextMarshaler); ok {
		if _, ok := self.(encoding.TextUnmarshaler); ok {
			b, err := m.MarshalText()
			c.bytes(b)
			return true, err
		}
	}
	return false, nil
}

func (c *coder) unmarshal(v reflect.Value) bool {
	if v.Type().PkgPath() == "" {
		return false
	}
	self := v.Addr().Interface()
	_, binaryOut := self.(encoding.BinaryMarshaler)
	if m, ok := self.(encoding.BinaryUnmarshaler); ok && binaryOut {
		m.UnmarshalBinary(c.readBytes())
		return true
	}
	_, textOut := self.(encoding.TextMarshaler)
	if m, ok := self.(encoding.TextUnmarshaler); ok && textOut {
		m.UnmarshalText(c.readBytes())
		return true
	}
	return false
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == ""
}

func (c *coder) write(v reflect.Value) error {
	t := v.Type()
	if c.out.Len() > limit {
		return errors.New("it is larger than 64 MiB")
	}
	if done, err := c.marshal(v); done {
		return err
	}
	switch t.Kind() {
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		c.u(n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.u(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.u(v.Uint())
	case reflect.Float32, reflect.Float64:
		c.u(math.Float64bits(v.Float()))
	case reflect.Complex64, reflect.Complex128:
		c.u(math.Float64bits(real(v.Complex())))
		c.u(math.Float64bits(imag(v.Complex())))
	case reflect.String:
		c.bytes([]byte(v.String()))
	case reflect.Struct:
		if foreign(t) {
			return fmt.Errorf("%v has parts that only its package knows", t)
		}
		for i := 0; i < t.NumField(); i++ {
			if err := c.write(field(v, i)); err != nil {
				return err
			}
		}
	default:
		return c.writeParts(v, t)
	}
	return nil
}

func (c *coder) writeParts(v reflect.Value, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Array, reflect.Slice:
		if t.Kind() == reflect.Slice {
			if v.IsNil() {
				c.u(0)
				return nil
			}
			c.u(uint64(v.Len()) + 1)
			if isBytes(t) {
				if v.Len() > limit {
					return errors.New("it is larger than 64 MiB")
				}
				c.out.Write(v.Bytes())
				return nil
			}
		}
		for i := 0; i < v.Len(); i++ {
			if err := c.write(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if v.IsNil() {
			c.u(0)
			return nil
		}
		c.u(uint64(v.Len()) + 1)
		for _, k := range v.MapKeys() {
			if err := c.write(copied(k)); err != nil {
				return err
			}
			if err := c.write(copied(v.MapIndex(k))); err != nil {
				return err
			}
		}
	case reflect.Ptr:
		if v.IsNil() {
			c.u(0)
			return nil
		}
		p := unsafe.Pointer(v.Pointer())
		if n, ok := c.pointers[p]; ok {
			c.u(n + 2)
			return nil
		}
		c.pointers[p] = uint64(len(c.pointers))
		c.u(1)
		return c.write(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			c.u(0)
			return nil
		}
		for i, known := range loose {
			if v.Elem().Type() == known {
				c.u(uint64(i) + 1)
				return c.write(copied(v.Elem()))
			}
		}
		return fmt.Errorf("it holds a %v behind an interface", v.Elem().Type())
	default:
		return fmt.Errorf("values of type %v live in one process only", t)
	}
	return nil
}

func (c *coder) read(v reflect.Value) {
	t := v.Type()
	if c.unmarshal(v) {
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(c.readU() != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(c.readU()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(c.readU())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(math.Float64frombits(c.readU()))
	case reflect.Complex64, reflect.Complex128:
		re := math.Float64frombits(c.readU())
		v.SetComplex(complex(re, math.Float64frombits(c.readU())))
	case reflect.String:
		v.SetString(string(c.readBytes()))
	case reflect.Struct:
		for i := 0; i < t.NumField(); i++ {
			c.read(field(v, i))
		}
	default:
		c.readParts(v, t)
	}
}

func (c *coder) readParts(v reflect.Value, t reflect.Type) {
	if t.Kind() == reflect.Array {
		for i := 0; i < v.Len(); i++ {
			c.read(v.Index(i))
		}
		return
	}
	n := c.readU()
	if n == 0 {
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, int(n-1), int(n-1)))
		if isBytes(t) {
			c.in.Read(v.Bytes())
			return
		}
		for i := 0; i < v.Len(); i++ {
			c.read(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for ; n > 1; n-- {
			k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			c.read(k)
			c.read(e)
			v.SetMapIndex(k, e)
		}
	case reflect.Ptr:
		if n > 1 {
			v.Set(c.values[n-2])
			return
		}
		v.Set(reflect.New(t.Elem()))
		c.values = append(c.values, copied(v))
		c.read(v.Elem())
	case reflect.Interface:
		e := reflect.New(loose[n-1]).Elem()
		c.read(e)
		v.Set(e)
	}
}

// The type as Go writes it, with its packages' names; "" if no other package can name it.
func (c *coder) name(t reflect.Type) string {
	if t.Name() != "" {
		switch {
		case t.PkgPath() == "":
			return t.Name()
		case t.PkgPath() == "main":
			return strings.ReplaceAll(t.Name(), "main.", "")
		case t.Name()[0] >= 'a' || strings.Contains(t.Name(), "["):
			return ""
		}
		if c.imports[t.PkgPath()] == "" {
			c.imports[t.PkgPath()] = "__p" + strconv.Itoa(len(c.imports))
		}
		return c.imports[t.PkgPath()] + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Ptr:
		return c.join("*", t.Elem(), "")
	case reflect.Slice:
		return c.join("[]", t.Elem(), "")
	case reflect.Array:
		return c.join("["+strconv.Itoa(t.Len())+"]", t.Elem(), "")
	case reflect.Map:
		return c.join("map["+c.name(t.Key())+"]", t.Elem(), c.name(t.Key()))
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return "interface{}"
		}
	case reflect.Struct:
		text := "struct{"
		for i := 0; i < t.NumField(); i++ {
			f := t.Field(i)
			if c.name(f.Type) == "" || f.Anonymous {
				return ""
			}
			text += f.Name + " " + c.name(f.Type) + " " + strconv.Quote(string(f.Tag)) + ";"
		}
		return text + "}"
	}
	return ""
}

func (c *coder) join(before string, t reflect.Type, key string) string {
	inner := c.name(t)
	if inner == "" || (before[0] == 'm' && key == "") {
		return ""
	}
	return before + inner
}

func say(kind byte, parts ...string) {
	c := &coder{}
	c.u(uint64(len(parts)))
	for _, part := range parts {
		c.bytes([]byte(part))
	}
	report.WriteByte(kind)
	report.Write(c.out.Bytes())
}

func Keep(name string, pointer interface{}) {
	c := &coder{pointers: map[unsafe.Pointer]uint64{}, imports: map[string]string{}}
	v := reflect.ValueOf(pointer).Elem()
	text := c.name(v.Type())
	err := c.write(v)
	if err == nil && text == "" {
		err = fmt.Errorf("values of type %v live in one process only", v.Type())
	}
	if err != nil {
		say('L', name, err.Error())
		return
	}
	parts := []string{name, text, c.out.String()}
	for path, as := range c.imports {
		parts = append(parts, as+" "+strconv.Quote(path))
	}
	say('V', parts...)
}

func Load(path string, variables map[string]interface{}) {
	b, _ := os.ReadFile(path)
	c := &coder{in: bytes.NewReader(b)}
	for c.in.Len() > 0 {
		name := string(c.readBytes())
		inner := &coder{in: bytes.NewReader(c.readBytes())}
		inner.read(reflect.ValueOf(variables[name]).Elem())
	}
}

func Result(values ...interface{}) {
	texts := []string{}
	for _, v := range values {
		texts = append(texts, fmt.Sprintf("%+v", v))
	}
	if len(texts) > 0 {
		say('R', strings.Join(texts, ", "))
	}
}

func End(path string) {
	code := 0
	if r := recover(); r != nil {
		text := fmt.Sprint(r)
		if err, ok := r.(error); ok {
			text = err.Error()
		}
		report.Reset()
		say('P', text, string(debug.Stack()))
		code = 2
	}
	os.WriteFile(path, report.Bytes(), 0o600)
	os.Exit(code)
}

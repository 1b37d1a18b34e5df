// Package jsonattack generates JSON texts that need as much memory as possible to decode. Tests
// send them like an untrusted peer.
//
// It is a package of its own because tests of several packages use it.
package jsonattack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
)

// Texts returns texts of about size bytes for each list, map and pointer in a type. Each text has
// as many elements there as fit. The name of a text has the position and the kind of elements.
func Texts(t reflect.Type, size int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		w := &walk{size: size, yield: yield}
		w.visit(t, t.String(), "", "")
	}
}

type walk struct {
	size  int
	yield func(string, []byte) bool
	above []reflect.Type
	done  bool
}

// visit generates the texts for a value between two pieces of text.
func (w *walk) visit(t reflect.Type, name, before, after string) {
	for _, a := range w.above {
		if a == t {
			return
		}
	}
	w.above = append(w.above, t)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	if opaque(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		w.visit(t.Elem(), name, before, after)
	case reflect.Slice, reflect.Array:
		w.fill(t, name, before+"[", "]"+after, func(elem string, _ int) string { return elem })
		w.visit(t.Elem(), name+"[]", before+"[", "]"+after)
	case reflect.Map:
		w.fill(t, name, before+"{", "}"+after, func(elem string, n int) string { return fmt.Sprintf(`"%x":%s`, n, elem) })
		w.visit(t.Elem(), name+"{}", before+`{"1":`, "}"+after)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case key == "-":
			case f.Anonymous && key == "":
				w.visit(f.Type, name, before, after)
			case f.IsExported():
				if key == "" {
					key = f.Name
				}
				w.visit(f.Type, name+"."+key, before+`{"`+key+`":`, "}"+after)
			}
		}
	}
}

// fill generates the texts of a list or map that is full of elements.
func (w *walk) fill(t reflect.Type, name, before, after string, element func(elem string, n int) string) {
	for _, elem := range []string{smallest(t.Elem(), 0), smallest(t.Elem(), 1), smallest(t.Elem(), 2), "null"} {
		var text bytes.Buffer
		text.WriteString(before)
		for n := 0; text.Len()+len(after)+len(elem)+16 < w.size; n++ {
			if n > 0 {
				text.WriteByte(',')
			}
			text.WriteString(element(elem, n))
		}
		text.WriteString(after)
		if w.done = w.done || !w.yield(name+" of "+elem, text.Bytes()); w.done {
			return
		}
	}
}

// smallest returns the shortest text of a value that contains everything it can, up to some number of
// levels.
func smallest(t reflect.Type, deep int) string {
	if opaque(t) {
		return "null"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return smallest(t.Elem(), deep)
	case reflect.Slice, reflect.Array:
		if deep == 0 {
			return "[]"
		}
		return "[" + smallest(t.Elem(), deep-1) + "]"
	case reflect.Map:
		if deep == 0 {
			return "{}"
		}
		return `{"":` + smallest(t.Elem(), deep-1) + "}"
	case reflect.Struct:
		if deep == 0 {
			return "{}"
		}
		var fields []string
		for i := range t.NumField() {
			f := t.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch kind := f.Type.Kind(); {
			case key == "" || key == "-" || !f.IsExported():
			case kind == reflect.Pointer, kind == reflect.Slice, kind == reflect.Map, kind == reflect.Struct:
				fields = append(fields, `"`+key+`":`+smallest(f.Type, deep-1))
			}
		}
		return "{" + strings.Join(fields, ",") + "}"
	case reflect.String:
		return `""`
	case reflect.Bool:
		return "true"
	case reflect.Interface:
		return "{}"
	}
	return "0"
}

// opaque reports whether a type has its own decoder.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Pointer && (p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()))
}

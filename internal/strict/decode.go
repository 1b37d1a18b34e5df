package strict

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"orrery/internal/problem"
)

// A Text is a value with a form of its own, such as "512MiB". What Parse says is wrong needs no place.
type Text interface {
	Parse(value any) *problem.Problem
}

// Wrong takes a mistake and the value that it is of.
type Wrong func(at *Node, p *problem.Problem)

// Table decodes a table, which is called name in messages, into structures: pointers, whose fields have a tag toml:"key". Each key must be
// of one of them; the first that has it gets it. A field that is a *Node is given what stands there.
func Table(at *Node, name string, wrong Wrong, into ...any) {
	d := decoder{wrong: wrong}
	structs := make([]reflect.Value, len(into))
	for i, s := range into {
		structs[i] = reflect.ValueOf(s).Elem()
	}
	d.table(name, at, structs...)
}

// Keys are the keys of structures as Table has them, in the order of their names.
func Keys(into ...any) []string {
	var all []string
	for _, s := range into {
		for key := range fields(reflect.TypeOf(s).Elem()) {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}

type decoder struct{ wrong Wrong }

func (d decoder) decode(name string, at *Node, into reflect.Value) {
	switch to := into.Addr().Interface().(type) {
	case **Node:
		*to = at
		return
	case Text:
		d.tell(name, at, to.Parse(at.Value))
		return
	case *time.Duration:
		d.tell(name, at, (*duration)(to).Parse(at.Value))
		return
	case encoding.TextUnmarshaler:
		d.text(name, at, to)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.decode(name, at, into.Elem())
	case reflect.Struct:
		d.table(name, at, into)
	case reflect.Slice:
		d.list(name, at, into)
	case reflect.Map:
		d.free(name, at, into)
	case reflect.Interface:
		into.Set(reflect.ValueOf(at.Value))
	default:
		d.scalar(name, at, into)
	}
}

func (d decoder) tell(name string, at *Node, p *problem.Problem) {
	if p != nil {
		p.What = name + ": " + p.What
		d.wrong(at, p)
	}
}

// text decodes into what reads itself from text; of a number it gets the digits.
func (d decoder) text(name string, at *Node, to encoding.TextUnmarshaler) {
	var text string
	switch v := at.Value.(type) {
	case string:
		text = v
	case int64, float64:
		text = fmt.Sprint(v)
	default:
		d.mismatch(name, "a string", at)
		return
	}
	err := to.UnmarshalText([]byte(text))
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		told := *p
		d.tell(name, at, &told)
	} else if err != nil {
		d.wrong(at, problem.New(problem.Mistake, "%s = %s", name, Say(at.Value)).Because(err))
	}
}

func (d decoder) table(name string, at *Node, into ...reflect.Value) {
	if _, ok := at.Value.(map[string]any); !ok {
		d.mismatch(name, "a table", at)
		return
	}
	var known []string
	to := map[string]reflect.Value{}
	for _, s := range into {
		for key, index := range fields(s.Type()) {
			if _, taken := to[key]; !taken {
				to[key] = s.FieldByIndex(index)
				known = append(known, key)
			}
		}
	}
	for _, key := range at.Order {
		if field, ok := to[key]; ok {
			d.decode(key, at.Keys[key], field)
		} else {
			d.wrong(at.Keys[key], unknown(name, key, known))
		}
	}
}

// fields gives the fields of a structure, and of those embedded in it, by key.
func fields(t reflect.Type) map[string][]int {
	all := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("toml"), ","); tag != "" && tag != "-" {
			all[tag] = f.Index
		}
	}
	return all
}

func unknown(table, key string, known []string) *problem.Problem {
	slices.Sort(known)
	what := fmt.Sprintf("unknown key %q", key)
	if table != "" {
		what += " in " + table
	}
	p := problem.New(problem.Mistake, "%s", what)
	if nearest := problem.Nearest(key, known); nearest != "" {
		return p.Try("%q is the nearest", nearest)
	}
	return p.Try("known: %s", strings.Join(known, ", "))
}

func (d decoder) list(name string, at *Node, into reflect.Value) {
	items, ok := at.Value.([]any)
	if !ok {
		d.mismatch(name, "a list", at)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range at.Items {
		d.decode(fmt.Sprintf("%s[%d]", name, i), item, into.Index(i))
	}
}

// free decodes a table whose keys are the user's.
func (d decoder) free(name string, at *Node, into reflect.Value) {
	if _, ok := at.Value.(map[string]any); !ok || into.Type().Key().Kind() != reflect.String {
		d.mismatch(name, "a table", at)
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(at.Order)))
	for _, key := range at.Order {
		element := reflect.New(into.Type().Elem()).Elem()
		d.decode(name+"."+key, at.Keys[key], element)
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), element)
	}
}

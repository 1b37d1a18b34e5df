package strict

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"orrery/internal/problem"
)

// A Text is a value with a form of its own, such as "512MiB". What Parse says is wrong needs no place.
type Text interface {
	Parse(value any) *problem.Problem
}

// Wrong takes a mistake and the value that it is of.
type Wrong func(at *Node, p *problem.Problem)

// A Decoder puts what a file says into structures. Fields have a tag toml:"key", and may have
// default:"value", which is what they are given where the key is not written, and unit:"size" or
// unit:"mode", which is how a number is written. A *Node is given what stands there. Without a tag,
// one called At is given the table itself, one called Line its line, and one called Name the name
// of a table of Tables. go-toml could decode too, but it stops at the first value of a wrong type,
// and every mistake is to be told at once.
type Decoder struct {
	Wrong    Wrong
	Misspelt func(table *Node, key string) // an unknown key of a table was probably meant as this one; may be nil
	Longest  int                           // string, in bytes; 0: any
	Name     int                           // longest name of a table of Tables, in bytes; 0: any
	Enough   func() bool                   // so many mistakes have been told that no more are sought; may be nil

	shapes map[reflect.Type]*shape // see shapeOf
}

// Table decodes a table, which is called name in messages, into structures: pointers. Each key must
// be of one of them; the first that has it gets it.
func Table(at *Node, name string, wrong Wrong, into ...any) {
	d := Decoder{Wrong: wrong}
	d.Table(at, name, into...)
}

// Table is as the function of this name.
func (d *Decoder) Table(at *Node, name string, into ...any) {
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
		all = slices.AppendSeq(all, maps.Keys(shapeOf(reflect.TypeOf(s).Elem()).fields))
	}
	slices.Sort(all)
	return all
}

func (d *Decoder) decode(name string, at *Node, into reflect.Value) {
	if d.Enough != nil && d.Enough() {
		return
	}
	if form := forms[into.Type()]; form != nil {
		into = as(into, form)
	}
	switch to := into.Addr().Interface().(type) {
	case **Node:
		*to = at
		return
	case named:
		d.tables(name, at, to)
		return
	case Text:
		d.tell(name, at, to.Parse(at.Value))
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

func (d *Decoder) tell(name string, at *Node, p *problem.Problem) {
	if p != nil {
		p.What = name + ": " + p.What
		d.Wrong(at, p)
	}
}

// text decodes into what reads itself from text; of a number it gets the digits.
func (d *Decoder) text(name string, at *Node, to encoding.TextUnmarshaler) {
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
		d.Wrong(at, problem.New(problem.Mistake, "%s = %s", name, Say(at.Value)).Because(err))
	}
}

func (d *Decoder) table(name string, at *Node, into ...reflect.Value) {
	for _, s := range into {
		d.begin(s, at)
	}
	if _, ok := at.Value.(map[string]any); !ok {
		d.mismatch(name, "a table", at)
		return
	}
	for _, key := range at.Order {
		known := func(s reflect.Value) bool { return d.shapeOf(s.Type()).fields[key].index != nil }
		i := slices.IndexFunc(into, known)
		if i < 0 {
			d.unknown(name, key, at, into)
			continue
		}
		d.decode(key, at.Keys[key], d.shapeOf(into[i].Type()).fields[key].of(into[i]))
	}
}

func (d *Decoder) unknown(table, key string, at *Node, into []reflect.Value) {
	if d.Enough != nil && d.Enough() {
		return
	}
	var known []string
	for _, s := range into {
		known = slices.AppendSeq(known, maps.Keys(d.shapeOf(s.Type()).fields))
	}
	slices.Sort(known)
	known = slices.Compact(known)
	what := fmt.Sprintf("unknown key %q", key)
	if table != "" {
		what += " in " + table
	}
	p := problem.New(problem.Mistake, "%s", what)
	if nearest := problem.Nearest(key, known); nearest != "" {
		if d.Misspelt != nil {
			d.Misspelt(at, nearest)
		}
		p.Try("did you mean %q?", nearest)
	} else {
		p.Try("known: %s", strings.Join(known, ", "))
	}
	d.Wrong(at.Keys[key], p)
}

func (d *Decoder) list(name string, at *Node, into reflect.Value) {
	want, itemName, isTable := "a list", name, into.Type().Elem().Kind() == reflect.Struct
	if isTable {
		want = "a list of tables"
	}
	items, ok := at.Value.([]any)
	if !ok {
		d.mismatch(name, want, at)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range at.Items {
		if !isTable {
			itemName = fmt.Sprintf("%s[%d]", name, i)
		}
		d.decode(itemName, item, into.Index(i))
	}
}

// free decodes a table whose keys are the user's.
func (d *Decoder) free(name string, at *Node, into reflect.Value) {
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

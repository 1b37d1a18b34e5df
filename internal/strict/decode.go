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

// A Text parses a value with its own syntax, such as "512MiB". The decoder adds the position to
// problems from Parse.
type Text interface {
	Parse(value any) *problem.Problem
}

// ReportFunc receives a mistake and the value that it concerns.
type ReportFunc func(at *Node, p *problem.Problem)

// A Decoder decodes a file into structures. A field has a tag toml:"key". It may have a tag
// default:"value" for a missing key, and a tag unit:"size" or unit:"mode" for the format of a
// number. A field of type *Node receives the undecoded value.
//
// Some fields without a tag are also set: At to the table itself, Line to its line, and Name to the
// name of a table of Tables.
//
// go-toml can decode as well, but it stops at the first value of a wrong type. A Decoder reports
// every mistake at once.
type Decoder struct {
	Report ReportFunc
	// OnUnknownKey reports the known key that an unknown key of a table probably meant. It may be nil.
	OnUnknownKey func(table *Node, key string)
	MaxStringLen int // maximum length of a string in bytes, or 0 for any
	MaxNameLen   int // maximum length of a name in Tables in bytes, or 0 for any
	// TooManyErrors reports whether to stop decoding, because enough mistakes were reported. It may be
	// nil.
	TooManyErrors func() bool
}

// Table decodes a table into pointers to structures. Argument name is the table's name in messages.
// Each key must belong to one of the structures. If several have it, the first one receives the
// value.
func Table(at *Node, name string, wrong ReportFunc, into ...any) {
	d := Decoder{Report: wrong}
	d.Table(at, name, into...)
}

// Table is the method form of the function Table.
func (d *Decoder) Table(at *Node, name string, into ...any) {
	structs := make([]reflect.Value, len(into))
	for i, s := range into {
		structs[i] = reflect.ValueOf(s).Elem()
	}
	d.table(name, at, structs...)
}

// Keys returns the sorted keys of structures as Table accepts them.
func Keys(into ...any) []string {
	var all []string
	for _, s := range into {
		all = slices.AppendSeq(all, maps.Keys(shapeOf(reflect.TypeOf(s).Elem()).fields))
	}
	slices.Sort(all)
	return all
}

func (d *Decoder) decode(name string, at *Node, into reflect.Value) {
	if d.TooManyErrors != nil && d.TooManyErrors() {
		return
	}
	if form := forms[into.Type()]; form != nil {
		into = convert(into, form)
	}
	switch to := into.Addr().Interface().(type) {
	case **Node:
		*to = at
		return
	case named:
		d.tables(name, at, to)
		return
	case Text:
		d.report(name, at, to.Parse(at.Value))
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
		d.stringMap(name, at, into)
	case reflect.Interface:
		into.Set(reflect.ValueOf(at.Value))
	default:
		d.scalar(name, at, into)
	}
}

func (d *Decoder) report(name string, at *Node, p *problem.Problem) {
	if p != nil {
		p.What = name + ": " + p.What
		d.Report(at, p)
	}
}

// text decodes into a value that parses text. A number is passed as its digits.
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
		d.report(name, at, &told)
	} else if err != nil {
		d.Report(at, problem.New(problem.Mistake, "%s = %s", name, Describe(at.Value)).Because(err))
	}
}

func (d *Decoder) table(name string, at *Node, into ...reflect.Value) {
	for _, s := range into {
		d.setDefaults(s, at)
	}
	if _, ok := at.Value.(map[string]any); !ok {
		d.mismatch(name, "a table", at)
		return
	}
	for _, key := range at.Order {
		known := func(s reflect.Value) bool { return shapeOf(s.Type()).fields[key].index != nil }
		i := slices.IndexFunc(into, known)
		if i < 0 {
			d.unknown(name, key, at, into)
			continue
		}
		d.decode(key, at.Keys[key], shapeOf(into[i].Type()).fields[key].valueIn(into[i]))
	}
}

func (d *Decoder) unknown(table, key string, at *Node, into []reflect.Value) {
	if d.TooManyErrors != nil && d.TooManyErrors() {
		return
	}
	var known []string
	for _, s := range into {
		known = slices.AppendSeq(known, maps.Keys(shapeOf(s.Type()).fields))
	}
	slices.Sort(known)
	known = slices.Compact(known)
	what := fmt.Sprintf("unknown key %q", key)
	if table != "" {
		what += " in " + table
	}
	p := problem.New(problem.Mistake, "%s", what)
	if nearest := problem.Suggest(key, known); nearest != "" {
		if d.OnUnknownKey != nil {
			d.OnUnknownKey(at, nearest)
		}
		p.Try("did you mean %q?", nearest)
	} else {
		p.Try("known: %s", strings.Join(known, ", "))
	}
	d.Report(at.Keys[key], p)
}

func (d *Decoder) list(name string, at *Node, into reflect.Value) {
	want, itemName, isTable := "a list", name, into.Type().Elem().Kind() == reflect.Struct
	if _, parses := reflect.New(into.Type().Elem()).Interface().(Text); isTable && parses {
		isTable = false
	}
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

// stringMap decodes a table with keys chosen by the user.
func (d *Decoder) stringMap(name string, at *Node, into reflect.Value) {
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
